/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the requests by endpoint and HTTP status: for each row of routes.def, and together for all
 * other paths and for requests refused before their path is known.
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
    XM_N_COUNTED = 1 /* one more for all other paths, which come last */
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

/* Counts an answered request. Any thread may call it. `route` NULL: no endpoint. */
void xm_request_counts_add(struct xm_request_counts *c, const struct xm_route *route,
                           int status);
/* Appends the counters in Prometheus' text format (metrics.h). */
void xm_request_counts_print(struct xm_request_counts *c, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
