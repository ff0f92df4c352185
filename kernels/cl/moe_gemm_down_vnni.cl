/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the rows of one expert; many tokens.
 *
 *     y[p][n] = h[p] . down[e][n] (+ bias[e][n])
 *
 * A work-item computes 16 * VECTORS neighbouring n for all rows of one expert. Global size
 * {H / (16 * VECTORS) rounded up, E}, local size 1.
 */
#define DST    f32
#define SHORTS 1
#include "expert_rows.h"
#include "short_gemm.h"

#include "gemv_rows.h"

#if BLOCKS || X_BYTES || (GROUP && BLOCK % GROUP == 0)
/* For few rows of h, rows of weights are read one by one. That needs the sums of h by groups, which
 * the writers of h compute only for groups that are whole within one block. */
#define FEW_AT_ONCE FEW_BY_ROWS

/* Computes rows `first` … of an expert for few rows of h. */
static inline void
down_few(const struct weight *w, ulong expert, uint first, __global const int *h,
         uint tokens, __global const float *bias, __global float *y, uint n_count)
{
    const uint end = min(first + 16 * VECTORS, n_count);
    for (uint n = first; n < end; n += ROWS_AT_ONCE) {
        const uint count = min(end - n, (uint)ROWS_AT_ONCE);
        float16 v[TOKENS_AT_ONCE], b = 0;
        products_of_rows(w, stored_row(w, expert, n), count, h, tokens, v);
        if (bias)
            b = LOAD_SOME(f32, bias, expert * n_count + n, count);
        for (uint t = 0; t < tokens; t++)
            STORE_SOME(f32, y, (ulong)t * n_count + n, count, v[t] + b);
    }
}
#else
#define FEW_AT_ONCE 0
#endif

__kernel void
moe_gemm_down_vnni(WEIGHT_PARAMETERS(w), __global const int *h,
                   __global const uint *first_tile, __global const int *tile_expert,
                   __global const int *source, __global const float *bias,
                   __global float *y, uint n_count, uint k_count)
{
#if GROUP || BLOCKS
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = (uint)get_global_id(0) * 16 * VECTORS;
    const ulong expert = get_global_id(1), row = expert * n_count + first;
    const ulong row_words = prepared_words(k_count, X_FORM);
    uint p = first_tile[expert] * 16;
    const uint end = expert_end(first_tile, source, expert);
    float16 f[MOST_TOKENS][VECTORS];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS; v++)
        rows[v] = (struct short_rows){w, stored_row(&w, expert, first + v * 16),
                                      stored_row(&w, expert, n_count - 1), 64};
    while (p < end) {
        const uint tokens = min(tokens_of_pass(end - p), end - p);
#if FEW_AT_ONCE
        if (tokens <= FEW_AT_ONCE) {
            down_few(&w, expert, first, h + p * row_words, tokens, bias,
                     y + (ulong)p * n_count, n_count);
            p += tokens;
            continue;
        }
#endif
        short_gemm(rows, h + p * row_words, tokens, f);
        for (uint t = 0; t < tokens; t++, p++)
            put_rows(f[t], n_count - first, bias ? bias + row : 0, y,
                     (ulong)p * n_count + first);
    }
#endif
}
