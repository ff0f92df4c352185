/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t,k] = w[ids[t]][k]
 *
 * A work-item makes one element. A row out of range becomes zeros.
 */
#include "weights.h"

#ifndef IDS
#define IDS i64
#endif
#ifndef DST
#define DST f32
#endif

__kernel void
embedding_ref(__global const STORAGE(IDS) *ids, __global const uchar *data,
              __global const uchar *scale, __global const uchar *zp,
              __global STORAGE(DST) *y, ulong tokens, uint rows, uint cols)
{
    const ulong at = get_global_id(0);
    const uint k = at % cols, groups = cols / weight_group(cols);
    const uint g = k / weight_group(cols);
    const long n = ids[at / cols];
    float v = 0.0f;
    if (n >= 0 && n < rows)
        v = (weight_raw(data, n, k, cols) - weight_zero_point(zp, n, g, rows, groups)) *
            weight_scale(scale, n, g, rows, groups);
    STORE(DST, y, at, v);
}
