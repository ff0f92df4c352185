/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order, as plain rows for a library's matmul; zeros where moe_sort
 * has left a place empty.
 *
 *     rows[p][k] = x[source[p] / top_k][k]        for the tiles p / 16 that have an expert
 *     ends[e]    = 16 * first_tile[e + 1]         where the rows of expert e end; NULL: unwanted
 *
 * A work-item copies one element; global size {K padded, 16 * tiles}, the latter at least the
 * number of experts.
 */
#include "types.h"

#ifndef SRC
#define SRC f16 /* type of x and of rows */
#endif

__kernel void
moe_gather_rows_ref(__global const STORAGE(SRC) * x, __global const int *tile_expert,
                    __global const int *source, __global STORAGE(SRC) * rows,
                    uint k_count, uint top_k, __global const uint *first_tile,
                    __global int *ends, uint experts)
{
    const ulong k = get_global_id(0), p = get_global_id(1);
    if (ends && k == 0 && p < experts)
        ends[p] = (int)(16 * first_tile[p + 1]);
    if (k >= k_count || tile_expert[p / 16] < 0)
        return;
    const int slot = source[p];
    const float v = slot < 0 ? 0.0f : LOAD(SRC, x, (ulong)((uint)slot / top_k) * k_count + k);
    STORE(SRC, rows, p * k_count + k, v);
}
