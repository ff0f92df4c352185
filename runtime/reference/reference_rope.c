/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary position embedding (Su et al. 2021) in the half-split order of GPT-NeoX:
 *
 *     x = [ first half | second half | not rotated ]
 *           0 … R/2-1    R/2 … R-1     R … D-1
 */
#include <math.h>
#include <string.h>

#include "runtime/reference/reference.h"

static void
rotate(const float *x, const float *cos, const float *sin, uint64_t d, uint64_t rotated,
       float *y)
{
    uint64_t half = rotated / 2;
    for (uint64_t i = 0; i < half; i++) {
        y[i] = x[i] * cos[i] - x[i + half] * sin[i];
        y[i + half] = x[i + half] * cos[i + half] + x[i] * sin[i + half];
    }
    if (2 * half < d)
        memcpy(y + 2 * half, x + 2 * half, (d - 2 * half) * sizeof(*y));
}

void
xm_ref_rope(const float *x, const float *cos, const float *sin, uint64_t tokens,
            uint64_t heads, uint64_t d, uint64_t rotated, float *y)
{
    for (uint64_t t = 0; t < tokens; t++) {
        for (uint64_t h = 0; h < heads; h++) {
            uint64_t at = (t * heads + h) * d;
            rotate(x + at, cos + t * rotated, sin + t * rotated, d, rotated, y + at);
        }
    }
}

void
xm_ref_rope_tables(const int64_t *positions, const float *frequencies, uint64_t tokens,
                   uint64_t r, float scale, bool twice, float *cos, float *sin)
{
    uint64_t columns = twice ? 2 * r : r;
    for (uint64_t t = 0; t < tokens; t++) {
        for (uint64_t i = 0; i < columns; i++) {
            float angle = (float)positions[t] * frequencies[i % r];
            cos[t * columns + i] = scale * cosf(angle);
            sin[t * columns + i] = scale * sinf(angle);
        }
    }
}
