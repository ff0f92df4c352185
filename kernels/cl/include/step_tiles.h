/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sub-group multiplies rows of weights by: up to TOKEN_TILES tiles of steps (steps.h), that
 * is operand a of matrix_mad.h. A token block is half a tile.
 */
#ifndef TOKEN_TILES
#define TOKEN_TILES 4 /* tiles of 16 tokens of a sub-group, at most */
#endif
#ifndef ROW_BLOCKS
#define ROW_BLOCKS 2 /* rows of a lane */
#endif
#ifndef SHARES
#define SHARES 1 /* sub-groups of a work-group that share the halves of rows (shared_gemm.h) */
#endif
#define TOKEN_BLOCKS (2 * TOKEN_TILES)
#define GROUP_TILES  (SHARES * TOKEN_TILES)
#define MOST_STEPS   4 /* whose halves of weights are made at a time */
#define PART_K       (16 * MOST_STEPS)
#define SUPER_PARTS  (SUPER_K / PART_K)

/* Where a tile begins, in halves from the kernel's argument x. The chips with sub-groups of 8 lanes
 * address memory by 32 bits and have no buffers of 8 GiB. */
#if SG == 8
typedef uint tile_place;
#else
typedef ulong tile_place;
#endif

struct tiles {
    __global const ushort *x;
    tile_place at[TOKEN_TILES];
    uint first; /* of this sub-group                                                    */
    uint n;     /* that exist, at most `each`                                           */
    uint each;  /* that sub-groups multiply: TOKEN_TILES, or a half or a quarter of them */
};

/* Up to GROUP_TILES tiles from `first` on, which sub-groups that share rows divide; those behind
 * `last` repeat it. */
static inline struct tiles
tiles_from(__global const ushort *x, uint first, uint last, uint k_count)
{
    const uint all = min(last + 1 - first, (uint)GROUP_TILES);
    struct tiles t = {.x = x, .each = TOKEN_TILES};
    if (all <= GROUP_TILES / 2)
        t.each = SHARES > 1 && all <= GROUP_TILES / 4 ? TOKEN_TILES / 4 : TOKEN_TILES / 2;
    t.first = first + (SHARES > 1 ? sub_group_broadcast(get_sub_group_id(), 0) * t.each : 0);
    t.n = t.first > last ? 0 : min(last + 1 - t.first, t.each);
#pragma unroll
    for (uint i = 0; i < TOKEN_TILES; i++)
        t.at[i] = (tile_place)min(t.first + i, last) * tile_halves(k_count);
    return t;
}

/* The place `place` of the first n tiles: what loads have in common. */
static inline void
tiles_at(const struct tiles *t, const uint n, uint place,
         __global const ushort *from[TOKEN_TILES])
{
    UNROLL_PRODUCTS
    for (uint i = 0; i < n; i++)
        from[i] = t->x + (t->at[i] + place);
}

/* Token block `block` of the step that is `steps` steps behind `from`. */
static inline matrix_a
load_step(__global const ushort *const from[TOKEN_TILES], const uint block,
          const uint steps)
{
    __global const ushort *at =
        from[block / 2] + (steps * STEP_HALVES + block % 2 * (STEP_HALVES / 2));
#if SG == 8
    __global const uint *words = (__global const uint *)at + get_sub_group_local_id() * 8;
    return as_int8((uint8)(vload4(0, words), vload4(1, words)));
#elif MATRIX_ENGINE
    return as_short8(intel_sub_group_block_read_us8(at));
#else
    ushort rows[8];
    for (uint i = 0; i < 8; i++)
        rows[i] = at[i * 16 + get_sub_group_local_id()];
    return as_short8(vload8(0, rows));
#endif
}

static inline void
clear(float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS * TOKEN_BLOCKS; i++)
        acc[i / TOKEN_BLOCKS][i % TOKEN_BLOCKS] = 0.0f;
}

/* acc += the products of `steps` steps that are `apart` steps apart, the first `first` steps behind
 * `from`. */
static inline void
add_products(__global const ushort *const from[TOKEN_TILES], const uint rows,
             const uint tiles, const uint first, const uint steps, const uint apart,
             int8 b[ROW_BLOCKS][MOST_STEPS], float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    UNROLL_PRODUCTS
    for (uint s = 0; s < steps; s++) {
        UNROLL_PRODUCTS
        for (uint i = 0; i < 2 * tiles; i++) {
            const matrix_a a = load_step(from, i, first + s * apart);
            UNROLL_PRODUCTS
            for (uint r = 0; r < rows; r++)
                acc[r][i] = matrix_mad(a, b[r][s], acc[r][i]);
        }
    }
}

/* acc += factor times such products. */
static inline void
add_scaled_products(__global const ushort *const from[TOKEN_TILES], const uint rows,
                    const uint tiles, const uint first, const uint steps,
                    const uint apart, int8 b[ROW_BLOCKS][MOST_STEPS],
                    const float factor[ROW_BLOCKS], float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    UNROLL_PRODUCTS
    for (uint i = 0; i < 2 * tiles; i++) {
        float8 c[ROW_BLOCKS];
        UNROLL_PRODUCTS
        for (uint r = 0; r < rows; r++)
            c[r] = 0.0f;
        UNROLL_PRODUCTS
        for (uint s = 0; s < steps; s++) {
            const matrix_a a = load_step(from, i, first + s * apart);
            UNROLL_PRODUCTS
            for (uint r = 0; r < rows; r++)
                c[r] = matrix_mad(a, b[r][s], c[r]);
        }
        UNROLL_PRODUCTS
        for (uint r = 0; r < rows; r++)
            acc[r][i] += c[r] * factor[r];
    }
}

/* Stores a row's results for eight tokens, `step` floats apart. */
static inline void
store_tokens(float8 v, __global float *y, uint step)
{
    float of[8];
    vstore8(v, 0, of);
#pragma unroll
    for (uint t = 0; t < 8; t++)
        y[(ulong)t * step] = of[t];
}
