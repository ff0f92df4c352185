/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Few tokens; up to three weights, or a gated linear unit (segments.h). A work-group of ITEMS
 * computes ROWS elements of one token; groups {blocks of ROWS rows of all segments, T}. Every
 * weight is read once for each token.
 */
#include "row_dots.h"
#include "segments.h"

__kernel void
linear_gemv_gen(ALL_SEGMENT_PARAMETERS, __global const STORAGE(SRC) * x, OTHER_PARAMETERS,
                uint k_count)
{
    __local float chunk[CHUNK_FLOATS], parts[PRODUCTS * ROWS * ITEMS];
    uint block = get_group_id(0);
    struct segment s;
    FIND_SEGMENT(s, block, ROWS);
    const struct segment up = UP_SEGMENT;
    const uint row = block * ROWS, me = get_local_id(0);
    const ulong first = stored_row(&s.w, 0, row), end = stored_row(&s.w, 0, s.n_count);
    const ulong up_first = stored_row(&up.w, 0, row),
                up_end = stored_row(&up.w, 0, up.n_count);
    const ulong t = get_group_id(1);
    float sum[PRODUCTS * ROWS], *up_sum = sum + (PRODUCTS - 1) * ROWS;
    for (uint r = 0; r < PRODUCTS * ROWS; r++)
        sum[r] = 0.0f;
    for (uint k = 0; k < k_count; k += CHUNK) {
        stage_chunk(chunk, x + t * k_count, k, k_count);
        add_rows(&s.w, first, end, k, chunk, 1.0f, sum);
        if (PRODUCTS == 2)
            add_rows(&up.w, up_first, up_end, k, chunk, 1.0f, up_sum);
    }
    group_sums(parts, sum, PRODUCTS * ROWS);
    for (uint r = 0; r < ROWS; r++) {
        float v = sum[r], u = up_sum[r];
        if (me == r && row + r < s.n_count)
            store_results(&s, &up, t, row + r, 1, v, u);
    }
}
