/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk's rows of K or V into their pages; formulas as in kv_write_ref. A work-group of ITEMS
 * moves one row of n elements.
 */
#include "group.h"
#include "types.h"

#ifndef SRC
#define SRC f32 /* of x */
#endif
#ifndef CACHE
#define CACHE f16
#endif
#ifndef CACHE_SCALED
#define CACHE_SCALED 0 /* 1: CACHE is i8 */
#endif
#ifndef HEADS_KV
#define HEADS_KV    2
#define PAGE_TOKENS 16
#endif

__kernel void
kv_write_gen(__global const STORAGE(SRC) *x, __global STORAGE(CACHE) *cache,
             __global float *scales, __global const int *table, int tokens, long past,
             int max_pages, int n)
{
    const ulong id = get_group_id(0);
    const int head = id % HEADS_KV, t = id / HEADS_KV % tokens,
              b = id / HEADS_KV / tokens;
    const int me = get_local_id(0);
    const long position = past + t;
    const int page = table[(long)b * max_pages + position / PAGE_TOKENS];
    const ulong row =
        ((ulong)page * HEADS_KV + head) * PAGE_TOKENS + position % PAGE_TOKENS;
#if CACHE_SCALED
    __local float parts[ITEMS];
    float most = 0.0f;
    for (int i = me; i < n; i += ITEMS)
        most = fmax(most, fabs(LOAD(SRC, x, id * n + i)));
    most = group_max(parts, most);
    const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
    if (page < 0)
        return;
    for (int i = me; i < n; i += ITEMS)
        cache[row * n + i] = convert_char_sat_rte(LOAD(SRC, x, id * n + i) * inverse);
    if (me == 0)
        scales[row] = most / 127.0f;
#else
    for (int i = me; page >= 0 && i < n; i += ITEMS)
        STORE(CACHE, cache, row * n + i, LOAD(SRC, x, id * n + i));
#endif
}
