/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the token runner: computes logits of token ids. It uses a sequence in a batch of its own
 * where the compiled model supports sequences, else an infer request.
 */
#ifndef XM_PLUGIN_PIPELINE_TOKEN_FEEDER_H
#define XM_PLUGIN_PIPELINE_TOKEN_FEEDER_H

#include "plugin/plugin.h"

struct xm_token_feeder;

/* logits: [rows][vocabulary]; the feeder owns them; valid until the next feed. */
struct xm_token_rows {
    const float *logits;
    uint64_t rows, vocabulary;
};

struct xm_token_feeder_ops {
    /* Feeds ids[n]. *out has the logits of at least the last `wanted` tokens, or of as many as the
     * model gives. */
    enum xm_status (*feed)(struct xm_token_feeder *f, const int32_t *ids, uint64_t n,
                           uint64_t wanted, struct xm_token_rows *out,
                           struct xm_error *err);
    uint64_t (*past)(const struct xm_token_feeder *f);
    void (*truncate)(struct xm_token_feeder *f, uint64_t past);
    /* While no positions are held: takes over cached positions of the longest prefix of ids[n] that
     * the KV cache still has. NULL: not supported. */
    enum xm_status (*match)(struct xm_token_feeder *f, const int32_t *ids, uint64_t n,
                            struct xm_error *err);
    /* That it feeds. NULL: it feeds a request. */
    struct xm_sequence *(*sequence)(const struct xm_token_feeder *f);
    /* As xm_batch_ops has them. NULL: not supported. */
    void (*prepare)(struct xm_token_feeder *f, const struct xm_token_choice *how);
    enum xm_status (*choose)(struct xm_token_feeder *f, struct xm_device_choice *c,
                             struct xm_error *err);
    void (*stop)(struct xm_token_feeder *f);
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
