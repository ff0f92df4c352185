/* SPDX-License-Identifier: Apache-2.0
 *
 * Half-split rotary embedding; formula and operands as in rope_ref. A work-item computes a span of
 * tokens with all their heads, 16 pairs at a time. y may be x.
 */
#include "span.h"
#include "types.h"

/* Rotates the head at `at`; cosines and sines point at the token's row of R. */
static void
rotate_head(__global const STORAGE(SRC) *x, __global const float *cosines,
            __global const float *sines, __global STORAGE(SRC) *y, ulong at, int d,
            int half_r)
{
    int i = 0;
    for (; i + 16 <= half_r; i += 16) {
        const float16 a = LOAD16(SRC, x, at + i), b = LOAD16(SRC, x, at + half_r + i);
        const float16 u = a * vload16(0, cosines + i) - b * vload16(0, sines + i);
        const float16 v =
            b * vload16(0, cosines + half_r + i) + a * vload16(0, sines + half_r + i);
        STORE16(SRC, y, at + i, u);
        STORE16(SRC, y, at + half_r + i, v);
    }
    for (; i < half_r; i++) {
        const float a = LOAD(SRC, x, at + i), b = LOAD(SRC, x, at + half_r + i);
        const float u = a * cosines[i] - b * sines[i];
        const float v = b * cosines[half_r + i] + a * sines[half_r + i];
        STORE(SRC, y, at + i, u);
        STORE(SRC, y, at + half_r + i, v);
    }
    for (i = 2 * half_r; i < d; i++)
        STORE(SRC, y, at + i, LOAD(SRC, x, at + i));
}

__kernel void
rope_vec(__global const STORAGE(SRC) *x, __global const float *cos_table,
         __global const float *sin_table, __global STORAGE(SRC) *y, ulong tokens,
         ulong table_tokens, int heads, int d, int rotated)
{
    for (ulong t = span_begin(tokens); t < span_end(tokens); t++) {
        const ulong table = t % table_tokens * rotated;
        for (int h = 0; h < heads; h++)
            rotate_head(x, cos_table + table, sin_table + table, y, (t * heads + h) * d, d,
                        rotated / 2);
    }
}
