/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t,k] = w[ids[t]][k]
 *
 * A work-group of ITEMS computes the row of one token. An id out of range gives zeros.
 */
#include "weights.h"

#ifndef IDS
#define IDS i64
#endif
#ifndef ITEMS
#define ITEMS 64 /* the launch's local size */
#endif

__kernel void
embedding_gen(__global const STORAGE(IDS) *ids, WEIGHT_PARAMETERS(w),
              __global STORAGE(DST) *y, ulong tokens, uint rows, uint cols)
{
    const ulong t = get_group_id(0);
    const struct weight w = WEIGHT(w, cols, 0);
    const long n = ids[t];
    const bool known = n >= 0 && n < rows;
    for (uint k = get_local_id(0); k < cols; k += ITEMS)
        STORE(DST, y, t * cols + k, known ? weight_at(&w, stored_row(&w, 0, n), k) : 0.0f);
}
