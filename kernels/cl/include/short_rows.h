/* SPDX-License-Identifier: Apache-2.0
 *
 * The 16 * VECTORS rows of weights that a work-item multiplies by many tokens, in VECTORS vectors
 * of 16 neighbouring rows, and how their results are stored.
 */
#define VECTORS   4
#define TILE_ROWS (16 * VECTORS)

#if GROUP || BLOCKS
/* 16 stored rows of a weight, from `first` on; rows behind `last` repeat it. */
struct short_rows {
    struct weight w;
    ulong first, last;
    uint ahead; /* distance, in rows, to the rows of the next call, for prefetches */
};
#endif

#ifdef DST
/* Stores the first `n` (at most 16 * VECTORS) results of one token to element `at` of y and
 * following. */
static inline void
put_rows(const float16 f[VECTORS], uint n, __global const float *bias,
         __global STORAGE(DST) * y, ulong at)
{
    for (uint v = 0; v < VECTORS && v * 16 < n; v++) {
        const uint count = min(n - v * 16, 16u);
        const float16 b = bias ? LOAD_SOME(f32, bias, v * 16, count) : 0.0f;
        STORE_SOME(DST, y, at + v * 16, count, f[v] + b);
    }
}
#endif
