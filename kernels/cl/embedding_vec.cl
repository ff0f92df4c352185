/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t,k] = w[ids[t]][k]
 *
 * A work-item makes a span of tokens; scale and zero point are read once a group. A row out
 * of range becomes zeros.
 */
#include "span.h"
#include "weights.h"

#ifndef IDS
#define IDS i64
#endif
#ifndef DST
#define DST f32
#endif

static void
copy_row(__global const uchar *data, __global const uchar *scale,
         __global const uchar *zp, __global STORAGE(DST) *y, ulong at, ulong n, uint rows,
         uint cols)
{
    const uint group = weight_group(cols), groups = cols / group;
    for (uint g = 0; g < groups; g++) {
        const float s = weight_scale(scale, n, g, rows, groups);
        const float z = weight_zero_point(zp, n, g, rows, groups);
        for (uint k = g * group; k < (g + 1) * group; k++)
            STORE(DST, y, at + k, (weight_raw(data, n, k, cols) - z) * s);
    }
}

__kernel void
embedding_vec(__global const STORAGE(IDS) *ids, __global const uchar *data,
              __global const uchar *scale, __global const uchar *zp,
              __global STORAGE(DST) *y, ulong tokens, uint rows, uint cols)
{
    for (ulong t = span_begin(tokens); t < span_end(tokens); t++) {
        const long n = ids[t];
        if (n >= 0 && n < rows) {
            copy_row(data, scale, zp, y, t * cols, n, rows, cols);
            continue;
        }
        for (uint k = 0; k < cols; k++)
            STORE(DST, y, t * cols + k, 0.0f);
    }
}
