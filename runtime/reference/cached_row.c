/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes rows of a KV cache in plain C, by the formulas of
 * kernels/cl/include/attention_cache.h. */
#include <math.h>

#include "runtime/reference/reference.h"
#include "runtime/util/element.h"

enum { BLOCK = 16 /* elements that share a scale */ };

/* The scale with code e. Codes are like an 8-bit float with 3 mantissa bits: 8 steps to each power
 * of two, from 2^first on; 2^first is subtracted, so that code 0 is 0. */
static float
scale_of(int e, int first)
{
    return ldexpf((float)(8 + e % 8), e / 8 + first - 3) - ldexpf(1.0f, first);
}

static float
element_of_i8(const uint8_t *values, uint8_t scale, uint64_t i)
{
    return (float)(int8_t)values[i] * scale_of(scale, -23);
}

static float
element_of_u4(const uint8_t *values, uint8_t scale, uint64_t i)
{
    const int q = values[i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15;
    const float n = (float)(2 * q - 15) + (scale % 2 ? 0.25f : -0.25f);
    return n * (n * n + 512.0f) * scale_of(scale / 2, -19);
}

void
xm_ref_cached_row(enum xm_element cache, const uint8_t *values, const uint8_t *scales,
                  uint64_t n, float *x)
{
    if (cache != XM_I8 && cache != XM_U4) {
        for (uint64_t i = 0; i < n; i++)
            x[i] = xm_load_float(cache, values, i);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        x[i] = (cache == XM_I8 ? element_of_i8 : element_of_u4)(values, scales[i / BLOCK],
                                                                i);
    xm_ref_rotate(x, 1, n);
}
