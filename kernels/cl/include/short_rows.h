/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of weights that a work-item multiplies by many tokens: 16 * VECTORS of them, in VECTORS
 * vectors of 16 neighbours, and how their results are stored.
 */
#define VECTORS   4
#define TILE_ROWS (16 * VECTORS)

#if GROUP || BLOCKS
/* Which stored rows of which weight: from `first` on; those behind `last` are `last`. */
struct short_rows {
    struct weight w;
    ulong first, last;
    uint ahead; /* rows from these to those of the next call */
};
#endif

#ifdef DST
/* The first `n` (at most 16 * VECTORS) rows of one token from element `at` of y on. */
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
