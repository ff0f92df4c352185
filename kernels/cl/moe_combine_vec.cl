/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts rows back into token order, summed over the slots in f32; formula as in moe_combine_ref.
 *
 * A work-item computes one token, 16 elements at a time. Global size {T}, local size 1.
 */
#include "own_experts.h"
#include "types.h"

#ifndef ADD
#define ADD f32 /* type of add */
#endif

__kernel void
moe_combine_vec(__global const float *y, __global const uint *place,
                __global const float *weights, __global const STORAGE(ADD) *add,
                __global STORAGE(DST) * out, uint n_count, uint top_k)
{
    const ulong t = get_global_id(0), first = t * top_k, end = first + top_k;
    const ulong row = t * n_count;
    uint n = 0;
    for (; n + 16 <= n_count; n += 16) {
        float16 sum = add ? LOAD16(ADD, add, row + n) : (float16)0.0f;
        for (ulong slot = first; slot < end; slot++) {
            if (!PARTIAL || place[slot] != NOWHERE)
                sum += weights[slot] * vload16(0, y + (ulong)place[slot] * n_count + n);
        }
        STORE16(DST, out, row + n, sum);
    }
    for (; n < n_count; n++) {
        float sum = add ? LOAD(ADD, add, row + n) : 0.0f;
        for (ulong slot = first; slot < end; slot++) {
            if (!PARTIAL || place[slot] != NOWHERE)
                sum += weights[slot] * y[(ulong)place[slot] * n_count + n];
        }
        STORE(DST, out, row + n, sum);
    }
}
