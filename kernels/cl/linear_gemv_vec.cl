/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Few tokens; up to three weights, or a gated linear unit (segments.h). A work-item computes
 * per_item rows of one W for all tokens, so that it streams one stretch of memory and meets
 * every row once; global size {blocks of per_item rows of all segments}, local size 1. x is
 * prepared rows (prepared.h).
 */
#if GLU /* activations 16 at a time */
#define BATCH 16
#define REAL  float16
#endif
#include "gemv_rows.h"
#include "segments.h"

__kernel void
linear_gemv_vec(ALL_SEGMENT_PARAMETERS, __global const int *x, OTHER_PARAMETERS,
                uint k_count, uint t_count, uint per_item)
{
    uint block = get_global_id(0);
    struct segment s;
    FIND_SEGMENT(s, block, per_item);
    const struct segment up = UP_SEGMENT;
    const uint end = min((block + 1) * per_item, s.n_count);
    for (uint n = block * per_item; n < end; n += BATCH) {
        const uint count = min(end - n, (uint)BATCH);
        for (uint first = 0; first < t_count; first += TOKENS_AT_ONCE) {
            const uint tokens = min(t_count - first, (uint)TOKENS_AT_ONCE);
            __global const int *rows = x_row_at(x, first, k_count).x;
            float v[TOKENS_AT_ONCE][BATCH] = {{0}}, u[TOKENS_AT_ONCE][BATCH] = {{0}};
            for (uint i = 0; i < count; i++) {
                products_with(&s.w, stored_row(&s.w, 0, n + i), rows, tokens, v[0] + i,
                              BATCH);
                if (PRODUCTS == 2)
                    products_with(&up.w, stored_row(&up.w, 0, n + i), rows, tokens,
                                  u[0] + i, BATCH);
            }
            for (uint t = 0; t < tokens; t++)
                store_results(&s, &up, first + t, n, count, v[t], u[t]);
        }
    }
}
