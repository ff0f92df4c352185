/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Few tokens; up to three weights (segments.h). A work-item computes per_item rows of one W for
 * all tokens, so that it streams one stretch of memory and meets every row once; global size
 * {blocks of per_item rows of all segments}, local size 1. x was prepared by linear_prepare_vnni.
 */
#include "segments.h"
#include "short_gemv.h"

__kernel void
linear_gemv_vnni(ALL_SEGMENT_PARAMETERS, __global const int *x,
                 __global const float *sums, __global const STORAGE(DST) * addend,
                 uint k_count, uint t_count, uint per_item)
{
#ifdef KEEP
    const ulong row_words = short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES);
    const uint groups = k_count / GROUP;
    uint block = get_global_id(0);
    struct segment s;
    FIND_SEGMENT(s, block, per_item);
    const uint first = block * per_item, end = min(first + per_item, s.n_count);
    for (uint n = first; n < end; n++) {
        for (uint t = 0; t < t_count; t++) {
            const float16 sum =
                short_row_dot(s.data, s.scale, s.zp, n, k_count, x + t * row_words,
                              sums + (ulong)t * groups);
            store_result(&s, addend, t, n, sum16(sum));
        }
    }
#endif
}
