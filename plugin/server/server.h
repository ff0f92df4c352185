/* SPDX-License-Identifier: Apache-2.0
 *
 * The server without its sockets: the models, access rules, and the functions that answer
 * (routes.h). The transport passes exchanges to it:
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

#define XM_SERVER_BODY ((size_t)16 << 20) /* bytes of a body; default of most_body */
enum { XM_MOST_DEPTH = 64 };              /* nesting of lists and objects in a body */

struct xm_server {
    /* owned by the caller; requests without a model name use the first */
    struct xm_served **models;
    size_t n_models;
    const struct xm_keys *keys; /* owned by the caller; empty or NULL: no key is needed */
    /* The name on which the server was told to listen, set by its transport. On loopback the Host
     * header must be this name or a loopback name, so that a web page cannot reach the server by a
     * name of its own (DNS rebinding). NULL: any name. */
    const char *host;
    /* origin whose pages may read answers; "*": all; NULL: none */
    const char *cors_origin;
    size_t most_body; /* bytes */
    bool is_draining; /* read with xm_flag_get: new texts are refused */
    uint64_t n_ids;   /* number of answers so far; atomic */
    struct xm_request_counts requests;
};

/* Finds the route. Returns false if the exchange was refused; then the body is not needed. */
bool xm_server_admit(struct xm_exchange *x, uint64_t body_bytes);
void xm_server_handle(struct xm_exchange *x);
/* Whether the text is a valid cors_origin: "*", "null" (pages in files), or
 * scheme://host[:port]. */
bool xm_server_is_origin(const char *text);
/* Returns the value of the CORS header if pages of this origin may read answers; else NULL. */
const char *xm_server_allows_origin(const struct xm_server *s, const char *origin);

/* ---- functions for endpoints ---- */

/* Parses the body, which must be an object; the caller frees *doc with yyjson_doc_free. */
bool xm_body_read(const struct xm_exchange *x, yyjson_doc **doc, struct xm_refusal *r);
/* Returns the model that the member "model" names; the first one if it is absent or empty. NULL:
 * refused. */
struct xm_served *xm_body_model(const struct xm_exchange *x, yyjson_val *body,
                                struct xm_refusal *r);
/* Returns the model with this name; NULL: refused. */
struct xm_served *xm_server_model(const struct xm_server *s, struct xm_slice name,
                                  struct xm_refusal *r);
struct xm_json_out;
/* Answers with this JSON, or 503 if memory was missing; frees *j. Takes the lock. */
void xm_answer_json(struct xm_exchange *x, struct xm_json_out *j);

#ifdef __cplusplus
}
#endif
#endif
