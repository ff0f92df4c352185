/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the next token of a text from a row of logits, with the text's sampler and the rules of
 * its generation (excluded ids, ids that end the text). Sessions and parallel texts both use it.
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
    struct xm_generation_result *out;   /* the text so far           */
};

/* row: [vocabulary]. A dry run has no logits: *id is 0, and never ends a text. Several threads may
 * choose at once for texts that share neither sampler nor scratch. Does not write to the clock. */
enum xm_status xm_next_token_choose(const struct xm_next_token *t, const float *row,
                                    uint64_t vocabulary, int32_t *id,
                                    struct xm_error *err);
/* Whether the id ends the text; it is then no part of the text. */
bool xm_next_token_ends(const struct xm_next_token *t, int32_t id);

/* The natural logarithm of the token's softmax probability in row[n]. */
double xm_logits_log_prob(const float *row, uint64_t n, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
