/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the token runner: what ids are fed to. A sequence and a batch of its own, where the
 * compiled model has those; else an infer request.
 */
#ifndef XM_PLUGIN_PIPELINE_TOKEN_FEEDER_H
#define XM_PLUGIN_PIPELINE_TOKEN_FEEDER_H

#include "plugin/plugin.h"

struct xm_token_feeder;

/* Rows of logits; memory of the feeder, until it is next fed. */
struct xm_token_rows {
    const float *logits;
    uint64_t rows, vocabulary;
};

struct xm_token_feeder_ops {
    /* At least the logits of the last `wanted` tokens, unless the model gives fewer. */
    enum xm_status (*feed)(struct xm_token_feeder *f, const int32_t *ids, uint64_t n,
                           uint64_t wanted, struct xm_token_rows *out,
                           struct xm_error *err);
    uint64_t (*past)(const struct xm_token_feeder *f);
    void (*truncate)(struct xm_token_feeder *f, uint64_t past);
    /* Of an empty one; NULL: nobody else has computed anything for it. */
    enum xm_status (*match)(struct xm_token_feeder *f, const int32_t *ids, uint64_t n,
                            struct xm_error *err);
    struct xm_infer *(*control)(const struct xm_token_feeder *f);
    void (*destroy)(struct xm_token_feeder *f);
};

struct xm_token_feeder {
    const struct xm_token_feeder_ops *ops;
};

/* XM_UNSUPPORTED: the model's first result is not f32 logits, or its inputs are not those of a
 * language model; of sequences: it has none. */
enum xm_status xm_feed_request_create(struct xm_compiled *c, struct xm_token_feeder **out,
                                      struct xm_error *err);
enum xm_status xm_feed_sequence_create(struct xm_compiled *c,
                                       struct xm_token_feeder **out,
                                       struct xm_error *err);

#endif
