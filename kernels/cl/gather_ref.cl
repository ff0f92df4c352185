/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[o,m,i] = x[o, ids[m], i]          x[outer,n,inner], y[outer,n_ids,inner]
 *
 * A work-item copies one element of BITS bits. Negative indices count from the end; indices that
 * are still out of range give zeros.
 */
#include "types.h"

#ifndef BITS
#define BITS 32
#endif
#ifndef IDS
#define IDS i64
#endif

__kernel void
gather_ref(__global const STORAGE_BITS(BITS) *x, __global const STORAGE(IDS) *ids,
           __global STORAGE_BITS(BITS) *y, ulong n, ulong n_ids, ulong inner)
{
    const ulong at = get_global_id(0);
    const ulong i = at % inner, m = at / inner % n_ids, o = at / inner / n_ids;
    long index = ids[m];
    if (index < 0)
        index += n;
    y[at] = index >= 0 && index < (long)n ? x[(o * n + index) * inner + i] : 0;
}
