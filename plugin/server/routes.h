/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoints: rows of routes.def (docs/add_an_endpoint.md).
 */
#ifndef XM_PLUGIN_SERVER_ROUTES_H
#define XM_PLUGIN_SERVER_ROUTES_H

#include "plugin/server/refusal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_route_access {
    XM_ROUTE_KEY, /* the client needs a key, if the server has keys */
    XM_ROUTE_OPEN /* no key is needed */
};

struct xm_route {
    const char *method, *path;
    enum xm_error_form form;
    enum xm_route_access access;
    /* Answers, or begins the work that will answer. Called without the lock. For POST, the body is
     * complete and its content type is JSON. */
    void (*answer)(struct xm_exchange *x);
};
extern const struct xm_route xm_routes[];
extern const size_t xm_n_routes;

#define ROUTE(method, path, form, access, answer) void answer(struct xm_exchange *x);
#include "plugin/server/routes.def"
#undef ROUTE

/* Returns the row of a path that accepts the method; NULL: there is none. *methods becomes the
 * path's methods, separated by ", "; empty: there is no such path. A query after '?' is ignored. */
const struct xm_route *xm_route_find(const char *method, const char *path,
                                     struct xm_strbuf *methods);

#ifdef __cplusplus
}
#endif
#endif
