/* SPDX-License-Identifier: Apache-2.0
 *
 *     values[r,:], ids[r,:] = the k largest (LARGEST 1) or smallest of x[r,:], in order
 *
 * Ties: the lower index first; a NaN comes after all numbers. A work-item computes one row, by k
 * searches for the best element behind the last one found.
 */
#include "order.h"
#include "types.h"

#ifndef VALUES
#define VALUES f32
#endif
#ifndef IDS
#define IDS i32
#endif

__kernel void
topk_ref(__global const STORAGE(SRC) *x, __global STORAGE(VALUES) *values,
         __global STORAGE(IDS) *ids, ulong n, ulong k)
{
    const ulong row = get_global_id(0);
    x += row * n;
    VALUE last = 0;
    ulong last_at = n;
    for (ulong s = 0; s < k; s++) {
        VALUE best = 0;
        ulong best_at = n;
        for (ulong i = 0; i < n; i++) {
            const VALUE v = LOAD(SRC, x, i);
            if (s > 0 && !stands_before(last, last_at, v, i))
                continue;
            if (best_at == n || stands_before(v, i, best, best_at)) {
                best = v;
                best_at = i;
            }
        }
        STORE(VALUES, values, row * k + s, best);
        STORE(IDS, ids, row * k + s, best_at);
        last = best;
        last_at = best_at;
    }
}
