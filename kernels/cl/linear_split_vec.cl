/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits each row of f16 activations into two rows of bf16, for a host library:
 *
 *     parts[2t][k] = bf16(x[t][k]),   parts[2t + 1][k] = x[t][k] - parts[2t][k]
 *
 * Their sum is x exactly: f16 has 11 bits of mantissa, bf16 has 8, and the difference has at
 * most 3. A work-item splits one row; global size {tokens}, local size 1.
 */
#include "round_bf16.h"

__kernel void
linear_split_vec(__global const half *x, __global ushort *parts, uint k_count)
{
    const ulong t = get_global_id(0);
    __global ushort *high = parts + 2 * t * k_count, *low = high + k_count;
    x += t * k_count;
    uint k = 0;
    for (; k + 16 <= k_count; k += 16) {
        const float16 v = LOAD16(f16, x, k), h = ROUND_BF16(float16, v);
        const float16 l = v == h ? (float16)0.0f : v - h; /* 0 for an infinity, too */
        vstore16(convert_ushort16(as_uint16(h) >> 16u), 0, high + k);
        vstore16(convert_ushort16(as_uint16(l) >> 16u), 0, low + k);
    }
    for (; k < k_count; k++) {
        const float v = LOAD(f16, x, k), h = ROUND_BF16(float, v);
        const float l = v == h ? 0.0f : v - h;
        high[k] = (ushort)(as_uint(h) >> 16);
        low[k] = (ushort)(as_uint(l) >> 16);
    }
}
