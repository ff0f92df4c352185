/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax with the maximum taken out: exp(x - max) / sum exp(x - max). A row with a NaN,
 * or of nothing but -infinity, gives NaN.
 */
#include <math.h>

#include "runtime/reference/reference.h"

static void
softmax_strided(const float *x, uint64_t n, uint64_t stride, float *y)
{
    float max = -INFINITY;
    float sum = 0.0f;
    for (uint64_t i = 0; i < n; i++)
        max = x[i * stride] > max ? x[i * stride] : max;
    for (uint64_t i = 0; i < n; i++) {
        y[i * stride] = expf(x[i * stride] - max);
        sum += y[i * stride];
    }
    for (uint64_t i = 0; i < n; i++)
        y[i * stride] /= sum;
}

void
xm_ref_softmax(const float *x, uint64_t outer, uint64_t n, uint64_t inner, float *y)
{
    for (uint64_t o = 0; o < outer; o++) {
        for (uint64_t i = 0; i < inner; i++)
            softmax_strided(x + o * n * inner + i, n, inner, y + o * n * inner + i);
    }
}
