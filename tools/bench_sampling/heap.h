/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain way to sample, to compare with: the exponential function of each logit in double
 * precision, all tokens in a heap, the best taken out one by one.
 */
#ifndef XM_TOOLS_BENCH_SAMPLING_HEAP_H
#define XM_TOOLS_BENCH_SAMPLING_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "plugin/text/sampler.h"

struct xm_heap_entry {
    float logit;
    int32_t id;
    double weight;
};

/* Whether xm_heap_choose has all that is set of `s`. */
bool xm_heap_knows(const struct xm_sampling *s);
/* `counts`: how often each token was accepted. `changed` and `entries` have room for n. */
int32_t xm_heap_choose(const struct xm_sampling *s, const float *logits, size_t n,
                       const uint32_t *counts, float *changed,
                       struct xm_heap_entry *entries, double unit);

#endif
