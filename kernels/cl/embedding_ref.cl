/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t,k] = w[ids[t]][k]
 *
 * A work-item computes one element. An id out of range gives zeros.
 */
#include "weights.h"

#ifndef IDS
#define IDS i64
#endif

__kernel void
embedding_ref(__global const STORAGE(IDS) *ids, WEIGHT_PARAMETERS(w),
              __global STORAGE(DST) *y, ulong tokens, uint rows, uint cols)
{
    const struct weight w = WEIGHT(w, cols, 0);
    const ulong at = get_global_id(0);
    const long n = ids[at / cols];
    const bool known = n >= 0 && n < rows;
    STORE(DST, y, at, known ? weight_at(&w, stored_row(&w, 0, n), at % cols) : 0.0f);
}
