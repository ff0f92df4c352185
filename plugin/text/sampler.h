/* SPDX-License-Identifier: Apache-2.0
 *
 * The next token from logits.
 *
 *     p = softmax(logits / temperature)   ->  top_k  ->  top_p  ->  draw
 *
 * Filters work in this order: temperature, then the top_k most likely tokens, then the
 * fewest of those whose probabilities, renormalised, reach top_p. Temperature 0 is
 * greedy: the largest logit, the lowest id of equal ones. A token whose logit is NaN or
 * -infinity is never chosen.
 *
 * Random numbers are PCG32 (M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient
 * Statistically Good Algorithms", 2014): a seed gives the same sequence on every machine.
 */
#ifndef XM_PLUGIN_TEXT_SAMPLER_H
#define XM_PLUGIN_TEXT_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_sampling {
    float temperature; /* ≥ 0; 0: greedy        */
    int top_k;         /* ≤ 0: all tokens       */
    float top_p;       /* 0..1; 1: all tokens   */
    uint64_t seed;
};

struct xm_sampler;

enum xm_status xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                                 struct xm_sampler **out, struct xm_error *err);
void xm_sampler_free(struct xm_sampler *sampler); /* NULL is allowed */

/* Chooses from `vocab_size` logits. Allocates nothing. XM_INVALID when no token can be
 * chosen: all logits are NaN or -infinity. */
enum xm_status xm_sampler_next(struct xm_sampler *sampler, const float *logits,
                               int32_t *id, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
