/* SPDX-License-Identifier: Apache-2.0
 *
 * What a text makes of a row of logits: a token, chosen by its sampler as its generation asks for,
 * which may be the one that ends it. The same for a session and for texts in parallel.
 */
#ifndef XM_PLUGIN_PIPELINE_NEXT_TOKEN_H
#define XM_PLUGIN_PIPELINE_NEXT_TOKEN_H

#include "plugin/pipeline/session.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_next_token {
    const struct xm_package *package; /* may be NULL */
    const struct xm_generation *asked;
    struct xm_sampler *sampler;
    struct xm_sampler_scratch *scratch; /* of the thread that chooses */
    struct xm_generation_result *out;   /* what there is of the text */
};

/* In a dry run, which has nothing to choose from, always 0, and no end. Tokens of texts with
 * samplers and scratch of their own are chosen in any threads; the clock is the caller's. */
enum xm_status xm_next_token_choose(const struct xm_next_token *t, const float *row,
                                    uint64_t vocabulary, int32_t *id,
                                    struct xm_error *err);
/* Whether the id ends the text, and is no part of it. */
bool xm_next_token_ends(const struct xm_next_token *t, int32_t id);

/* Not the caller's. */
struct xm_end_ids {
    const int32_t *ids;
    size_t n;
};
/* The ids that end a text, or would if they were not ignored. */
struct xm_end_ids xm_generation_ends(const struct xm_package *p,
                                     const struct xm_generation *asked);
enum { XM_BARRED_LISTS = 2 };
/* The ids that may not be the next token behind `length` new ones: those that the package says are
 * never chosen, and before the least length those that end a text. Ids may be beyond the
 * vocabulary. */
void xm_generation_barred(const struct xm_package *p, const struct xm_generation *asked,
                          uint64_t length, struct xm_end_ids out[XM_BARRED_LISTS]);

/* The natural logarithm of a token's probability: of its softmax in the row. */
double xm_logits_log_prob(const float *row, uint64_t n, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
