/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]),   many tokens
 *
 * A work-item computes 16 * VECTORS columns of y for up to MOST_TOKENS tokens. Global size
 * {N / (16 * VECTORS), passes} rounded up, local size 1. x was packed by linear_prepare_vec.
 */
#define SHORTS 1
#include "short_gemm.h"

__kernel void
linear_gemm_vnni(WEIGHT_PARAMETERS(w), __global const int *x,
                 __global const float *bias, __global STORAGE(DST) * y, uint n_count,
                 uint k_count, uint t_count)
{
#if GROUP || BLOCKS
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint first = (uint)get_global_id(0) * 16 * VECTORS;
    const uint each = tokens_of_pass(t_count);
    const uint begin = (uint)get_global_id(1) * each;
    const ulong row_words = prepared_words(k_count, X_FORM);
    if (begin >= t_count)
        return;
    const uint tokens = min(each, t_count - begin);
    float16 f[MOST_TOKENS][VECTORS];
    struct short_rows rows[VECTORS];
    for (uint v = 0; v < VECTORS; v++)
        rows[v] = (struct short_rows){w, stored_row(&w, 0, first + v * 16),
                                      stored_row(&w, 0, n_count - 1), 64};
    short_gemm(rows, x + begin * row_words, tokens, f);
    for (uint t = 0; t < tokens; t++)
        put_rows(f[t], n_count - first, bias ? bias + first : 0, y,
                 (ulong)(begin + t) * n_count + first);
#endif
}
