/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t][n] = sum_k x[t][k] w[n][k] (+ bias[n]) (+ addend[t][n])
 *
 * Few tokens; up to three weights, or a gated linear unit (segments.h). A work-group computes 32
 * neighbouring n of one token, K split among its sub-groups (lane_rows.h). Global size
 * {blocks of 32 rows of all segments * SG * SPLIT, T}.
 */
#include "lane_rows.h"
#include "segments.h"

/* Each segment has its own loop, whose addresses follow from the kernel's arguments: otherwise
 * compilers compute 64-bit addresses and, for old chips, even loops around loads. */
#define MULTIPLY(i)                                                                      \
    do {                                                                                 \
        const struct weight w = WEIGHT(w##i, k_count, i);                                \
        multiply_rows(&w, &alone, first, last, x, &shares[0]);                           \
    } while (0)

LANE_ROWS_GROUP __kernel void
linear_gemv_dpas(ALL_SEGMENT_PARAMETERS, __global const STORAGE(SRC) * x,
                 OTHER_PARAMETERS, uint k_count)
{
    __local row_shares shares[PRODUCTS];
    uint block = (uint)get_group_id(0);
    struct segment s;
    FIND_SEGMENT(s, block, UNIT_ROWS);
    const struct segment up = UP_SEGMENT;
    const uint first = block * UNIT_ROWS, last = s.n_count - 1;
    const ulong t = get_group_id(1);
    const struct slots alone = {0, 0, 1, 0};
    x += t * k_count;
#if SEGMENTS == 1 || PRODUCTS == 2
    MULTIPLY(0);
#else
    if (s.index == 0)
        MULTIPLY(0);
#if SEGMENTS == 2
    else
        MULTIPLY(1);
#else
    else if (s.index == 1)
        MULTIPLY(1);
    else
        MULTIPLY(2);
#endif
#endif
    if (PRODUCTS == 2)
        multiply_rows(&up.w, &alone, first, last, x, &shares[PRODUCTS - 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint i = (uint)get_local_id(0);
    if (i >= UNIT_ROWS || first + i > last)
        return;
    const float product = row_total(&shares[0], i),
                up_product = row_total(&shares[PRODUCTS - 1], i);
    store_results(&s, &up, t, first + i, 1, product, up_product);
}
