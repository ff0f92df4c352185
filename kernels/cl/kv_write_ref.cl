/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk's rows of K or V into their pages:
 *
 *     cache[page(b, past + t)][h][slot][:] = x[b,t,h,:]
 *
 * i8 caches keep x / s, s = max|x| / 127 of the row, and s in `scales`. A work-item moves one
 * row of N elements. A position without a page (table entry < 0) is not kept.
 */
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
#define HEADS_KV 2
#define PAGE_TOKENS 16
#endif

#if CACHE_SCALED
static void
write_row(__global const STORAGE(SRC) *x, __global STORAGE(CACHE) *cache,
          __global float *scales, ulong from, ulong row, int n)
{
    float most = 0.0f;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(LOAD(SRC, x, from + i)));
    const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
    for (int i = 0; i < n; i++)
        cache[row * n + i] = convert_char_sat_rte(LOAD(SRC, x, from + i) * inverse);
    scales[row] = most / 127.0f;
}
#else
static void
write_row(__global const STORAGE(SRC) *x, __global STORAGE(CACHE) *cache,
          __global float *scales, ulong from, ulong row, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16)
        STORE16(CACHE, cache, row * n + i, LOAD16(SRC, x, from + i));
    for (; i < n; i++)
        STORE(CACHE, cache, row * n + i, LOAD(SRC, x, from + i));
}
#endif

__kernel void
kv_write_ref(__global const STORAGE(SRC) *x, __global STORAGE(CACHE) *cache,
             __global float *scales, __global const int *table, int tokens, long past,
             int max_pages, int n)
{
    const ulong id = get_global_id(0);
    const int head = id % HEADS_KV, t = id / HEADS_KV % tokens, b = id / HEADS_KV / tokens;
    const long position = past + t;
    const int page = table[(long)b * max_pages + position / PAGE_TOKENS];
    if (page < 0)
        return;
    const ulong row =
        ((ulong)page * HEADS_KV + head) * PAGE_TOKENS + position % PAGE_TOKENS;
    write_row(x, cache, scales, id * n, row, n);
}
