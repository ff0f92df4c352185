/* SPDX-License-Identifier: Apache-2.0
 *
 * Down projection of the chosen experts, summed with the routing weights; few tokens.
 *
 *     y[t][n] = (add[t][n] +) sum_s weights[t][s] (h[t][s] . down[e][n] (+ bias[e][n]))
 *
 * e = ids[t][s]. A work-group of ITEMS computes ROWS elements; groups {H / ROWS, T}. The slots are
 * summed in registers and joined once.
 */
#undef SRC
#define SRC f32 /* type of h */
#include "own_experts.h"
#include "row_dots.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif

__kernel void
moe_down_gen(WEIGHT_PARAMETERS(w), __global const float *h, __global const int *ids,
             __global const float *weights, __global const float *bias,
             __global const STORAGE(ADD) *add, __global STORAGE(DST) *y, uint n_count,
             uint k_count, uint top_k)
{
    __local float chunk[CHUNK_FLOATS], parts[ROWS * ITEMS];
    const struct weight w = WEIGHT(w, k_count, 0);
    const uint row = (uint)get_group_id(0) * ROWS, me = get_local_id(0);
    const ulong t = get_group_id(1);
    float sum[ROWS];
    for (uint r = 0; r < ROWS; r++)
        sum[r] = 0.0f;
    for (ulong slot = t * top_k; slot < (t + 1) * top_k; slot++) {
        /* Runs at least once: PoCL miscompiles loops with barriers that may run no times. */
        const ulong first = stored_row(&w, IS_ABSENT(ids[slot]) ? 0 : ids[slot], 0);
        const uint k_end = IS_ABSENT(ids[slot]) ? min(k_count, 1u) : k_count;
        for (uint k = 0; k < k_end; k += CHUNK) {
            stage_chunk(chunk, h + slot * k_count, k, k_count);
            add_rows(&w, first + row, first + n_count, k, chunk, weights[slot], sum);
        }
    }
    group_sums(parts, sum, ROWS);
    for (uint r = 0; r < ROWS; r++) {
        if (me != r || row + r >= n_count)
            continue;
        float value = sum[r] + (add ? LOAD(ADD, add, t * n_count + row + r) : 0.0f);
        for (ulong slot = t * top_k; bias && slot < (t + 1) * top_k; slot++)
            value += IS_ABSENT(ids[slot])
                         ? 0.0f
                         : weights[slot] * bias[(ulong)ids[slot] * n_count + row + r];
        STORE(DST, y, t * n_count + row + r, value);
    }
}
