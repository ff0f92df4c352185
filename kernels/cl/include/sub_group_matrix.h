/* SPDX-License-Identifier: Apache-2.0
 *
 * Two blocks of 8 rows of weights times two blocks of SG tokens, by matrix_mad.h:
 *
 *     acc[r][t] = sum_k w[row of block r][k] x[k][token of block t]     float8: its rows
 *
 * The weights are a; the tokens are b, one a lane. Integers become halves without arithmetic:
 * 0x6400 | q is 1024 + q. Scale and zero point come in afterwards, in float, with the sums of x
 * that a row of ones gives:
 *
 *     sum_k (q[k] - z) s x[k] = s (sum_k (1024 + q[k]) x[k] - (1024 + z) sum_k x[k])
 *
 * once every SPAN k, of one group and few enough that the large sums cancel without harm.
 *
 * A lane has one half or two of a word of a chunk (pairs.h): nothing is exchanged between lanes.
 *
 * Tiles of activations are pairs of halves (pairs.h). K is whole chunks; weights are integers or
 * f16.
 */
#include "matrix_mad.h"
#include "pairs.h"
#include "planes.h"

#define ROW_BLOCKS   2
#define TOKEN_BLOCKS 2
#define TILE_BLOCKS  (16 / SG) /* of the token blocks, those of a tile */
#define TILES        (TOKEN_BLOCKS / TILE_BLOCKS)

#define WORD_K      PAIR_WORD_K(PLANES)
#define CHUNK_WORDS PAIR_CHUNK_WORDS(PLANES, GROUP)
#define CHUNK_K     PAIR_CHUNK_K(PLANES, GROUP)
#define STEPS       PAIR_STEPS(PLANES, GROUP)

#if GROUP == 0
#define SPAN CHUNK_K
#elif GROUP % CHUNK_K
#error "a group is whole chunks"
#elif GROUP <= 128
#define SPAN GROUP
#elif GROUP % 128 == 0
#define SPAN 128
#else
#define SPAN CHUNK_K
#endif

/* ---- weights ------------------------------------------------------------------------- */

/* Eight stored rows of a weight from `first` on; those behind the last there is repeat it. */
struct row_block {
    struct weight w;
    ulong first;
    ulong begin; /* the element that `first` begins with */
    uint last;   /* how far behind `first` */
};

static inline struct row_block
row_block_at(const struct weight *w, ulong first, ulong last)
{
    return (struct row_block){*w, first, row_begin(w, first),
                              last > first ? (uint)(last - first) : 0};
}

/* The element that row i begins with. */
static inline ulong
block_row(const struct row_block *block, uint i)
{
    return block->begin + (ulong)min(i, block->last) * block->w.view.x;
}

/* This lane's bits of a chunk of a row, its slots of step 0 lowest. */
static inline slots
load_slots(__global const uint *chunk)
{
#if CHUNK_WORDS == 8 && SG == 8
    return intel_sub_group_block_read(chunk);
#elif CHUNK_WORDS == 8 && MATRIX_ENGINE
    return intel_sub_group_block_read_us((__global const ushort *)chunk);
#else
    const uint lane = get_sub_group_local_id(), pair = lane * 8 / SG;
    const uint shift = pair / CHUNK_WORDS * STEPS * (32 / WORD_K);
#if SG == 8
    return chunk[pair % CHUNK_WORDS] >> shift;
#else
    __global const ushort *word = (__global const ushort *)(chunk + pair % CHUNK_WORDS);
    return word[lane % 2] >> shift;
#endif
#endif
}

/* Chunk `chunk` of each row of a block. */
static inline void
load_rows(const struct row_block *block, uint chunk, slots bits[8])
{
#pragma unroll
    for (uint i = 0; i < 8; i++)
        bits[i] =
            load_slots((__global const uint *)block->w.data +
                       block_row(block, i) / WORD_K +
                       chunk * CHUNK_WORDS);
}

/* Step `step` of a chunk, each q as the half 1024 + q. */
static inline matrix_a
matrix_rows(const slots bits[8], uint step)
{
    slots rows[8];
#pragma unroll
    for (uint i = 0; i < 8; i++) {
#if GROUP
        const slots mask = (slots)(((1u << (32 / WORD_K)) - 1) * 0x10001u);
        const slots q = ((bits[i] ^ (slots)FLIP) >> (step * (32 / WORD_K))) & mask;
        rows[i] = q | (slots)0x64006400u;
#else
        rows[i] = bits[i];
#endif
    }
#if SG == 8
    return as_int8(vload8(0, rows));
#else
    return as_short8(vload8(0, rows));
#endif
}

/* ---- tokens -------------------------------------------------------------------------- */

/* Step `step`, counted from the first chunk, of token block `block` of a tile. */
static inline int8
load_tokens(__global const uint *tile, uint block, uint step)
{
    return as_int8(
        intel_sub_group_block_read8(tile + pair_word(step, 0, block * SG, SG)));
}

/* ---- products ------------------------------------------------------------------------ */

/* What two tiles, or one, have been multiplied with. */
struct products {
    float8 of[ROW_BLOCKS][TOKEN_BLOCKS];
    float x_sum[TOKEN_BLOCKS]; /* of x alone */
};

static inline void
clear_products(struct products *p)
{
#pragma unroll
    for (uint t = 0; t < TOKEN_BLOCKS; t++) {
        p->x_sum[t] = 0.0f;
#pragma unroll
        for (uint r = 0; r < ROW_BLOCKS; r++)
            p->of[r][t] = 0.0f;
    }
}

/* p += a chunk of the rows times that of the tiles. */
static inline void
add_chunk(struct products *p, const struct row_block rows[ROW_BLOCKS],
          __global const uint *const tiles[TILES], uint chunk)
{
    slots bits[ROW_BLOCKS][8];
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++)
        load_rows(&rows[r], chunk, bits[r]);
#pragma unroll 1
    for (uint step = 0; step < STEPS; step++) {
        matrix_a a[ROW_BLOCKS];
#pragma unroll
        for (uint r = 0; r < ROW_BLOCKS; r++)
            a[r] = matrix_rows(bits[r], step);
#pragma unroll
        for (uint t = 0; t < TOKEN_BLOCKS; t++) {
            const int8 b = load_tokens(tiles[t / TILE_BLOCKS], t % TILE_BLOCKS,
                                       chunk * STEPS + step);
            if (GROUP)
                p->x_sum[t] = ones_mad(b, p->x_sum[t]);
#pragma unroll
            for (uint r = 0; r < ROW_BLOCKS; r++)
                p->of[r][t] = matrix_mad(a[r], b, p->of[r][t]);
        }
    }
}

#if GROUP
/* acc + (sum - zero x_sum) scale: lane i has scale and zero point of row i. */
static inline float8
add_scaled(float8 acc, float8 sum, float x_sum, float scale, float zero)
{
    float from[8], to[8];
    vstore8(sum, 0, from);
    vstore8(acc, 0, to);
#pragma unroll
    for (uint i = 0; i < 8; i++)
        to[i] += (from[i] - intel_sub_group_shuffle(zero, i) * x_sum) *
                 intel_sub_group_shuffle(scale, i);
    return vload8(0, to);
}

/* acc += the products of a span of group g, scaled and less their zero points. */
static inline void
add_span(float8 acc[ROW_BLOCKS][TOKEN_BLOCKS], const struct products *p,
         const struct row_block rows[ROW_BLOCKS], uint g)
{
#pragma unroll
    for (uint r = 0; r < ROW_BLOCKS; r++) {
        const uint row = min(get_sub_group_local_id() % 8, rows[r].last);
        const struct weight *w = &rows[r].w;
        const ulong i =
            scale_behind(w, rows[r].first + row, block_row(&rows[r], row), g);
        const float scale = ALIGNED(SCALE, w->scale, i);
        const float zero = zero_point_at(w, i) + OFFSET + 1024.0f;
#pragma unroll
        for (uint t = 0; t < TOKEN_BLOCKS; t++)
            acc[r][t] = add_scaled(acc[r][t], p->of[r][t], p->x_sum[t], scale, zero);
    }
}
#endif

/* The tiles from `tile` on; the last is `last_tile`, which those behind it repeat. */
static inline void
multiply_tiles(const struct row_block rows[ROW_BLOCKS], __global const uint *x, uint tile,
               uint last_tile, float8 acc[ROW_BLOCKS][TOKEN_BLOCKS])
{
    const uint k_count = rows[0].w.k_count;
    __global const uint *tiles[TILES];
    struct products p;
#pragma unroll
    for (uint i = 0; i < TILES; i++)
        tiles[i] = x + min(tile + i, last_tile) * (ulong)k_count * 8;
    clear_products(&p);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS * TOKEN_BLOCKS; i++)
        acc[i / TOKEN_BLOCKS][i % TOKEN_BLOCKS] = 0.0f;
#pragma unroll 1
    for (uint k = 0; k < k_count; k += SPAN) {
#pragma unroll 1
        for (uint chunk = k / CHUNK_K; chunk < (k + SPAN) / CHUNK_K; chunk++)
            add_chunk(&p, rows, tiles, chunk);
#if GROUP
        add_span(acc, &p, rows, k / GROUP);
        clear_products(&p);
#endif
    }
#if !GROUP
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS * TOKEN_BLOCKS; i++)
        acc[i / TOKEN_BLOCKS][i % TOKEN_BLOCKS] =
            p.of[i / TOKEN_BLOCKS][i % TOKEN_BLOCKS];
#endif
}

/* A block of rows of one token, plus their biases (NULL: none), to `n` places from y on, at
 * most 8. */
static inline void
store_rows(float8 sum, __global const float *bias, __global STORAGE(DST) * y, uint n)
{
    if (n >= 8) {
        sum += bias ? vload8(0, bias) : 0.0f;
#if IS_HALF(DST)
        vstore_half8(sum, 0, y);
#else
        vstore8(sum, 0, y);
#endif
        return;
    }
    float rest[8];
    vstore8(sum, 0, rest);
#pragma unroll 1
    for (uint i = 0; i < n; i++)
        STORE(DST, y, i, rest[i] + (bias ? bias[i] : 0.0f));
}
