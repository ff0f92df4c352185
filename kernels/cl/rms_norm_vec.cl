/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = x[r,:] / sqrt(mean(x[r,:]^2) + epsilon) * gamma
 *
 * A work-item computes a span of rows, 16 elements at a time; the elements behind the last 16 are
 * computed one by one. The second read of a row comes from the first-level cache. prepared (NULL:
 * unwanted): also writes prepared rows (prepared.h).
 */
#include "prepared.h"
#include "span.h"

#ifndef HAS_GAMMA
#define HAS_GAMMA 1
#endif

static float
row_scale(__global const STORAGE(SRC) *x, ulong row, int n, float epsilon)
{
    float16 sums = 0.0f;
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        const float16 v = LOAD16(SRC, x, row + i);
        sums += v * v;
    }
    float sum = sum16(sums);
    for (; i < n; i++) {
        const float v = LOAD(SRC, x, row + i);
        sum += v * v;
    }
    return 1.0f / sqrt(sum / n + epsilon);
}

__kernel void
rms_norm_vec(__global const STORAGE(SRC) *x, __global const float *gamma,
             __global STORAGE(DST) *y, ulong rows, int n, float epsilon,
             __global int *prepared)
{
    for (ulong r = span_begin(rows); r < span_end(rows); r++) {
        const ulong row = r * n;
        const float scale = row_scale(x, row, n, epsilon);
        int i = 0;
        for (; i + 16 <= n; i += 16) {
            const float16 v = LOAD16(SRC, x, row + i) * scale;
            STORE16(DST, y, row + i, HAS_GAMMA ? v * vload16(0, gamma + i) : v);
        }
        for (; i < n; i++) {
            const float v = LOAD(SRC, x, row + i) * scale;
            STORE(DST, y, row + i, HAS_GAMMA ? v * gamma[i] : v);
        }
        PASTE(prepare_row_, DST)(y, n, r, prepared, FORM);
    }
}
