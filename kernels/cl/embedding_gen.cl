/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t,k] = w[ids[t]][k]
 *
 * A work-group of ITEMS makes the row of one token. A row out of range becomes zeros.
 */
#include "words.h"

#ifndef IDS
#define IDS i64
#endif
#ifndef DST
#define DST f32
#endif
#ifndef ITEMS
#define ITEMS 64 /* the launch's local size */
#endif

__kernel void
embedding_gen(__global const STORAGE(IDS) *ids, __global const uchar *data,
              __global const uchar *scale, __global const uchar *zp,
              __global STORAGE(DST) *y, ulong tokens, uint rows, uint cols)
{
    const ulong t = get_group_id(0);
    const struct weight weight = {data, scale, zp, rows, cols};
    const long n = ids[t];
    const bool known = n >= 0 && n < rows;
    for (uint k = get_local_id(0); k < cols; k += ITEMS)
        STORE(DST, y, t * cols + k, known ? weight_at(&weight, n, k) : 0.0f);
}
