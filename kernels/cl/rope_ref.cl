/* SPDX-License-Identifier: Apache-2.0
 *
 * Half-split rotary embedding of x[B,T,heads,D] by cos, sin [B|1,T,R]:
 *
 *     y[i]       = x[i] cos[i] - x[i + R/2] sin[i]                       i < R/2
 *     y[i + R/2] = x[i + R/2] cos[i + R/2] + x[i] sin[i + R/2]
 *     y[i]       = x[i]                                                  i >= R
 *
 * A work-item computes one head of one token; y may be x. `table_tokens` is B T, or T for tables
 * that all sequences share.
 */
#include "types.h"

__kernel void
rope_ref(__global const STORAGE(SRC) *x, __global const float *cos_table,
         __global const float *sin_table, __global STORAGE(SRC) *y, ulong tokens,
         ulong table_tokens, int heads, int d, int rotated)
{
    const ulong id = get_global_id(0);
    const ulong at = id * d, table = id / heads % table_tokens * rotated;
    const int half_r = rotated / 2;
    for (int i = 0; i < half_r; i++) {
        const float a = LOAD(SRC, x, at + i), b = LOAD(SRC, x, at + half_r + i);
        const float u = a * cos_table[table + i] - b * sin_table[table + i];
        const float v =
            b * cos_table[table + half_r + i] + a * sin_table[table + half_r + i];
        STORE(SRC, y, at + i, u);
        STORE(SRC, y, at + half_r + i, v);
    }
    for (int i = 2 * half_r; i < d; i++)
        STORE(SRC, y, at + i, LOAD(SRC, x, at + i));
}
