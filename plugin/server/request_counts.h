/* SPDX-License-Identifier: Apache-2.0
 *
 * How often each endpoint was asked, and with which of HTTP's statuses it answered: for each row of
 * routes.def, and together for all other paths and what is refused before its path is looked at.
 */
#ifndef XM_PLUGIN_SERVER_REQUEST_COUNTS_H
#define XM_PLUGIN_SERVER_REQUEST_COUNTS_H

#include <stdint.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_route;

#define ROUTE(method, path, form, access, answer) +1
#define STATUS(status, openai, anthropic)         +1
enum {
    XM_N_COUNTED = 1 /* all other paths, which come last */
#include "plugin/server/routes.def"
    ,
    XM_N_COUNTED_STATUSES = 0
#include "plugin/server/statuses.def"
};
#undef STATUS
#undef ROUTE

struct xm_request_counts {
    uint64_t n[XM_N_COUNTED][XM_N_COUNTED_STATUSES]; /* atomic */
};

/* A request is answered. From any thread. `route` NULL: no endpoint's. */
void xm_request_counts_add(struct xm_request_counts *c, const struct xm_route *route,
                           int status);
/* Appends them as Prometheus reads them (metrics.h). */
void xm_request_counts_print(struct xm_request_counts *c, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
