/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[r,:] = e^(x[r,:] - max x[r,:]) / sum e^(x[r,:] - max x[r,:])
 *
 * Softmax over the last axis: a work-item computes a span of rows, 16 elements at a time, and reads
 * each row three times; y may be x. `inner` is 1.
 */
#include "span.h"
#include "types.h"
#include "vector.h"

static float
row_max(__global const STORAGE(SRC) *x, ulong n)
{
    float16 most = -INFINITY;
    ulong i = 0;
    for (; i + 16 <= n; i += 16)
        most = fmax(most, LOAD16(SRC, x, i));
    float m = max16(most);
    for (; i < n; i++)
        m = fmax(m, LOAD(SRC, x, i));
    return m;
}

static float
row_sum(__global const STORAGE(SRC) *x, ulong n, float most)
{
    float16 sums = 0.0f;
    ulong i = 0;
    for (; i + 16 <= n; i += 16)
        sums += exp(LOAD16(SRC, x, i) - most);
    float sum = sum16(sums);
    for (; i < n; i++)
        sum += exp(LOAD(SRC, x, i) - most);
    return sum;
}

__kernel void
softmax_vec(__global const STORAGE(SRC) *x, __global STORAGE(DST) *y, ulong columns,
            ulong n, ulong inner)
{
    for (ulong r = span_begin(columns); r < span_end(columns); r++) {
        const ulong row = r * n;
        const float most = row_max(x + row, n);
        const float sum = row_sum(x + row, n, most);
        ulong i = row;
        for (; i + 16 <= row + n; i += 16)
            STORE16(DST, y, i, exp(LOAD16(SRC, x, i) - most) / sum);
        for (; i < row + n; i++)
            STORE(DST, y, i, exp(LOAD(SRC, x, i) - most) / sum);
    }
}
