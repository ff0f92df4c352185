/* SPDX-License-Identifier: Apache-2.0
 *
 *     values[r,:], ids[r,:] = the k largest (LARGEST 1) or smallest of x[r,:], in order
 *
 * A work-group of ITEMS computes one row, by k searches for the best element behind the last one
 * found: every work-item among its own elements and then all together.
 */
#include "order.h"
#include "types.h"

#ifndef VALUES
#define VALUES f32
#endif
#ifndef IDS
#define IDS i32
#endif
#ifndef ITEMS
#define ITEMS 64 /* a power of two; the launch's local size */
#endif

/* Returns whether element `at` of a row comes before `than_at`; index n: no element, behind all
 * others. */
static inline bool
is_better(VALUE v, ulong at, VALUE than, ulong than_at, ulong n)
{
    return at < n && (than_at == n || stands_before(v, at, than, than_at));
}

__kernel void
topk_gen(__global const STORAGE(SRC) *x, __global STORAGE(VALUES) *values,
         __global STORAGE(IDS) *ids, ulong n, ulong k)
{
    __local VALUE best[ITEMS];
    __local ulong best_at[ITEMS];
    const ulong row = get_group_id(0);
    const uint me = get_local_id(0);
    x += row * n;
    VALUE last = 0;
    ulong last_at = n;
    ulong s = 0;
    do { /* runs at least once, as k is at least 1 (group.h) */
        VALUE mine = 0;
        ulong mine_at = n;
        for (ulong i = me; i < n; i += ITEMS) {
            const VALUE v = LOAD(SRC, x, i);
            const bool is_left = s == 0 || stands_before(last, last_at, v, i);
            if (is_left && is_better(v, i, mine, mine_at, n)) {
                mine = v;
                mine_at = i;
            }
        }
        best[me] = mine;
        best_at[me] = mine_at;
        for (uint left = ITEMS / 2; left > 0; left /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (me < left && is_better(best[me + left], best_at[me + left], best[me],
                                       best_at[me], n)) {
                best[me] = best[me + left];
                best_at[me] = best_at[me + left];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        last = best[0];
        last_at = best_at[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me == 0) {
            STORE(VALUES, values, row * k + s, last);
            STORE(IDS, ids, row * k + s, last_at);
        }
    } while (++s < k);
}
