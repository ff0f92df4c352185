/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the token runner: runs a text as an infer request. Feeds the inputs that the model has;
 * the request's states hold the positions.
 */
#ifndef XM_PLUGIN_PIPELINE_FEED_REQUEST_H
#define XM_PLUGIN_PIPELINE_FEED_REQUEST_H

#include "plugin/plugin.h"

struct xm_feed_request;

/* Rows of logits, [rows][vocabulary]. The request owns them; they are valid until the next tokens
 * are fed. */
struct xm_token_rows {
    const float *logits;
    uint64_t rows, vocabulary;
};

/* XM_UNSUPPORTED: the model has no result, or its inputs are not those of a language model. */
enum xm_status xm_feed_request_create(struct xm_compiled *c, struct xm_feed_request **out,
                                      struct xm_error *err);
void xm_feed_request_destroy(struct xm_feed_request *r); /* NULL is allowed */
struct xm_infer *xm_feed_request_infer(const struct xm_feed_request *r);
/* Feeds ids[n]. *out has the logits of at least the last `wanted` tokens, or fewer if the model
 * returns fewer. XM_UNSUPPORTED: the model's first result is not f32 logits. */
enum xm_status xm_feed_request(struct xm_feed_request *r, const int32_t *ids, uint64_t n,
                               uint64_t wanted, struct xm_token_rows *out,
                               struct xm_error *err);

#endif
