/* SPDX-License-Identifier: Apache-2.0
 *
 * The activations by which a sub-group multiplies rows of weights: up to TOKEN_TILES tiles of steps
 * (steps.h), which are operand a of matrix_mad.h. A token block is half a tile, 8 tokens.
 */
#ifndef TOKEN_TILES
#define TOKEN_TILES 4 /* tiles of 16 tokens of a sub-group, at most */
#endif
#ifndef ROW_BLOCKS
#define ROW_BLOCKS 2 /* rows of weights of a lane */
#endif
#ifndef SHARES
#define SHARES 1 /* sub-groups of a work-group that share converted weights (shared_gemm.h) */
#endif
#define TOKEN_BLOCKS (2 * TOKEN_TILES)
#define GROUP_TILES  (SHARES * TOKEN_TILES)
#define MOST_STEPS   4 /* most steps whose weights are converted to halves at a time */
#define PART_K       (16 * MOST_STEPS)
#define SUPER_PARTS  (SUPER_K / PART_K)

/* The start of a tile, in halves from the kernel's argument x. Chips with sub-groups of 8 lanes
 * calculate it in 32 bits, which is enough because they have no buffers of 8 GiB. */
#if SG == 8
typedef uint tile_place;
#else
typedef ulong tile_place;
#endif

struct tiles {
    __global const ushort *x;
    tile_place at[TOKEN_TILES];
    uint first; /* first tile of this sub-group */
    uint n;     /* number of its tiles that exist, at most `each` */
    uint each;  /* tiles of each sub-group: TOKEN_TILES, or a half or a quarter of them */
};

/* Returns this sub-group's tiles. The sub-groups that share rows divide up to GROUP_TILES tiles
 * from `first` on; tiles after `last` repeat it. */
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

/* Sets from[i] to place `place` of tile i, for the first n tiles: the part of addresses that
 * several loads share. */
static inline void
tiles_at(const struct tiles *t, const uint n, uint place,
         __global const ushort *from[TOKEN_TILES])
{
    UNROLL_PRODUCTS
    for (uint i = 0; i < n; i++)
        from[i] = t->x + (t->at[i] + place);
}

/* load_step reads the two token blocks of the step that is `steps` steps, a compile-time constant,
 * after `tile`. With 16 lanes one message reads both, 512 bytes; from block reads the compiler
 * makes two messages. A message takes its address from the first element of a register, here
 * XM_P. */
#if MATRIX_ENGINE && SG == 16
#define STEP_CASE(n, bytes)                                                              \
    case n:                                                                              \
        __asm__("{\n"                                                                    \
                ".decl XM_P v_type=G type=uq num_elts=1 align=GRF\n"                     \
                ".decl XM_A v_type=G type=uq num_elts=1 alias=<%1,0>\n"                  \
                "add (M1_NM, 1) XM_P(0,0)<1> XM_A(0,0)<0;1,0> " bytes ":uw\n"            \
                "lsc_load.ugm (M1_NM, 1) %0:d64x64t flat[XM_P]:a64\n"                    \
                "}\n"                                                                    \
                : "=rw"(both)                                                            \
                : "rw.u"(tile));                                                         \
        break;

static inline void
load_step(__global const ushort *tile, const uint steps, matrix_a a[2])
{
    short16 both;
    switch (steps) {
        STEP_CASE(0, "0x0")
        STEP_CASE(1, "0x200")
        STEP_CASE(2, "0x400")
        STEP_CASE(3, "0x600")
        STEP_CASE(4, "0x800")
        STEP_CASE(5, "0xa00")
        STEP_CASE(6, "0xc00")
        STEP_CASE(7, "0xe00")
        STEP_CASE(8, "0x1000")
        STEP_CASE(9, "0x1200")
        STEP_CASE(10, "0x1400")
        STEP_CASE(11, "0x1600")
        STEP_CASE(12, "0x1800")
        STEP_CASE(13, "0x1a00")
        STEP_CASE(14, "0x1c00")
        STEP_CASE(15, "0x1e00")
    }
    a[0] = both.lo;
    a[1] = both.hi;
}
#else
static inline matrix_a
load_block(__global const ushort *at)
{
#if SG == 8
    __global const uint *words = (__global const uint *)at + get_sub_group_local_id() * 8;
    return as_int8((uint8)(vload4(0, words), vload4(1, words)));
#else
    ushort rows[8];
    for (uint i = 0; i < 8; i++)
        rows[i] = at[i * 16 + get_sub_group_local_id()];
    return as_short8(vload8(0, rows));
#endif
}

static inline void
load_step(__global const ushort *tile, const uint steps, matrix_a a[2])
{
    a[0] = load_block(tile + steps * STEP_HALVES);
    a[1] = load_block(tile + (steps * STEP_HALVES + STEP_HALVES / 2));
}
#endif

static inline void
clear(float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS * TOKEN_BLOCKS; i++)
        acc[i / TOKEN_BLOCKS][i % TOKEN_BLOCKS] = 0.0f;
}

/* acc += the products of `steps` steps. The first one is `first` steps after `from`, and each next
 * one is `apart` steps further. */
static inline void
add_products(__global const ushort *const from[TOKEN_TILES], const uint rows,
             const uint tiles, const uint first, const uint steps, const uint apart,
             int8 b[ROW_BLOCKS][MOST_STEPS], float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    UNROLL_PRODUCTS
    for (uint s = 0; s < steps; s++) {
        UNROLL_PRODUCTS
        for (uint t = 0; t < tiles; t++) {
            matrix_a a[2];
            load_step(from[t], first + s * apart, a);
            UNROLL_PRODUCTS
            for (uint i = 0; i < 2; i++)
                UNROLL_PRODUCTS
                for (uint r = 0; r < rows; r++)
                    acc[r][2 * t + i] = matrix_mad(a[i], b[r][s], acc[r][2 * t + i]);
        }
    }
}

/* acc += factor[r] times the products that add_products would add. */
static inline void
add_scaled_products(__global const ushort *const from[TOKEN_TILES], const uint rows,
                    const uint tiles, const uint first, const uint steps,
                    const uint apart, int8 b[ROW_BLOCKS][MOST_STEPS],
                    const float factor[ROW_BLOCKS], float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    UNROLL_PRODUCTS
    for (uint t = 0; t < tiles; t++) {
        float8 c[2][ROW_BLOCKS];
        UNROLL_PRODUCTS
        for (uint r = 0; r < rows; r++)
            c[0][r] = c[1][r] = 0.0f;
        UNROLL_PRODUCTS
        for (uint s = 0; s < steps; s++) {
            matrix_a a[2];
            load_step(from[t], first + s * apart, a);
            UNROLL_PRODUCTS
            for (uint i = 0; i < 2; i++)
                UNROLL_PRODUCTS
                for (uint r = 0; r < rows; r++)
                    c[i][r] = matrix_mad(a[i], b[r][s], c[i][r]);
        }
        UNROLL_PRODUCTS
        for (uint i = 0; i < 2; i++)
            UNROLL_PRODUCTS
            for (uint r = 0; r < rows; r++)
                acc[r][2 * t + i] += c[i][r] * factor[r];
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
