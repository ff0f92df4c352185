/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Few tokens; up to three weights, or a gated linear unit (segments.h). A work-item computes
 * per_item rows of one W for all tokens, so that it reads one range of memory in order, and
 * every row once; global size {blocks of per_item rows of all segments}, local size 1. x is
 * prepared rows (prepared.h).
 */
#define REAL float16
#define REAL_IS_16
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
    for (uint n = block * per_item; n < end; n += ROWS_AT_ONCE) {
        const uint count = min(end - n, (uint)ROWS_AT_ONCE);
        const ulong row = stored_row(&s.w, 0, n), up_row = stored_row(&up.w, 0, n);
        for (uint first = 0; first < t_count; first += TOKENS_AT_ONCE) {
            const uint tokens = min(t_count - first, (uint)TOKENS_AT_ONCE);
            __global const int *rows = x_row_at(x, first, k_count).x;
            float16 v[TOKENS_AT_ONCE], u[TOKENS_AT_ONCE];
            if (PRODUCTS == 2)
                products_in_turn(&s.w, row, &up.w, up_row, count, rows, tokens, v, u);
            else
                products_of_rows(&s.w, row, count, rows, tokens, v);
            for (uint t = 0; t < tokens; t++)
                store_results(&s, &up, first + t, n, count, v[t], u[t]);
        }
    }
}
