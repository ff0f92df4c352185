/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of rotary embedding [tokens, columns], columns = R or 2R:
 *
 *     cos[t,i] = scale cos(positions[t] frequencies[i mod R]),  sin alike
 *
 * A work-item computes one element of each.
 */
#include "types.h"

#ifndef POSITION
#define POSITION i64 /* type of positions */
#endif

__kernel void
rope_tables_ref(__global const STORAGE(POSITION) *positions,
                __global const float *frequencies, __global float *cos_table,
                __global float *sin_table, int r, int columns, float scale)
{
    const ulong at = get_global_id(0);
    const int i = (int)(at % columns) % r;
    const float angle = (float)LOAD(POSITION, positions, at / columns) * frequencies[i];
    cos_table[at] = scale * cos(angle);
    sin_table[at] = scale * sin(angle);
}
