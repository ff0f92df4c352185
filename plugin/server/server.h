/* SPDX-License-Identifier: Apache-2.0
 *
 * The server without its sockets: models, who may ask, and which function answers (routes.h). The
 * transport gives it exchanges:
 *
 *     headers ──► xm_server_admit ──► body ──► xm_server_handle ──► the exchange is answered
 *                      └──► refused: 401, 403, 404, 405, 413, 415, 503
 */
#ifndef XM_PLUGIN_SERVER_SERVER_H
#define XM_PLUGIN_SERVER_SERVER_H

#include "plugin/server/engine.h"
#include "plugin/server/exchange.h"
#include "plugin/server/keys.h"
#include "plugin/server/refusal.h"
#include "plugin/server/request_counts.h"
#include "plugin/server/routes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XM_SERVER_BODY ((size_t)16 << 20) /* bytes, by default */
enum { XM_MOST_DEPTH = 64 };              /* of lists and objects in a body */

struct xm_server {
    struct xm_served **models; /* the caller's; the first is who is meant by no name */
    size_t n_models;
    const struct xm_keys *keys; /* the caller's; none: nobody needs one */
    /* The name by which the server was told to listen, set by its transport. On loopback the Host
     * header must be it, or a name of loopback, so that a web page cannot reach the server by a
     * name of its own (DNS rebinding). NULL: any name. */
    const char *host;
    const char *cors_origin; /* whose pages may ask; "*": all; NULL: none */
    size_t most_body;        /* bytes */
    bool is_draining;        /* xm_flag_get: no new texts are taken */
    uint64_t n_ids;          /* of answers so far; atomic */
    struct xm_request_counts requests;
};

/* Finds the route. False: the exchange has been refused, and the body is not wanted. */
bool xm_server_admit(struct xm_exchange *x, uint64_t body_bytes);
void xm_server_handle(struct xm_exchange *x);
/* Whether cors_origin can be it: "*", "null" (pages of files), or scheme://host[:port], no more. */
bool xm_server_is_origin(const char *text);
/* Whether pages of this origin may read answers; the value of the header then. */
const char *xm_server_allows_origin(const struct xm_server *s, const char *origin);

/* ---- for those who answer ---- */

/* The body, which is an object; the caller frees *doc with yyjson_doc_free. */
bool xm_body_read(const struct xm_exchange *x, yyjson_doc **doc, struct xm_refusal *r);
/* The model that "model" names; absent or empty: the first. NULL: refused. */
struct xm_served *xm_body_model(const struct xm_exchange *x, yyjson_val *body,
                                struct xm_refusal *r);
/* The model of this name; NULL: refused. */
struct xm_served *xm_server_model(const struct xm_server *s, struct xm_slice name,
                                  struct xm_refusal *r);
struct xm_json_out;
/* Answers with this JSON, or 503 where there was no memory for it; ends *j. Takes the lock. */
void xm_answer_json(struct xm_exchange *x, struct xm_json_out *j);

#ifdef __cplusplus
}
#endif
#endif
