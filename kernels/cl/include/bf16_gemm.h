/* SPDX-License-Identifier: Apache-2.0
 *
 * 16 * VECTORS rows of weights of any format times up to 16 * MOST_TILES tokens in tiles of bf16
 * (bf16_tiles.h), on the tiles of AMX:
 *
 *     c[v][n][row][token] = sum_k w[row 16 v + row][k] x[tile n][k][token]
 *
 * Unit by unit (units.h) rows of weights are decoded to bytes, scaled, and rounded to bf16 once for
 * all tokens. They are the left operand in row order; the activations were transposed when they
 * were packed. Products of two tiles are summed in f32 in a tile register. AMX products of bytes
 * would gain nothing: with a scale per 32 columns they would have no more columns than those of
 * bf16, and every sum of 32 columns would have to leave its tile register to be scaled.
 *
 * Kernels define SHORTS 1 and X_PAIRS 1 before they include anything.
 */
#include "planes.h"
#include "prepared.h"

#include "bf16_tiles.h"
#include "block_shorts.h"
#include "short_rows.h"
#include "group_units.h"

#define MOST_TILES  8
#define MOST_TOKENS (16 * MOST_TILES)

#if GROUP || BLOCKS
/* Vectors of a decoded row, plus one unused, so that rows begin in different sets of the L1
 * cache. */
#define ROW_VECTORS (UNIT_COLUMNS / 32 + 1)
#define ROW_WORDS   (16 * ROW_VECTORS)

struct rows_unit {
    uint16 words[TILE_ROWS][ROW_VECTORS];
};

/* A unit and the scaling of its integers: those of columns 32 b + 16 h … become q factor[h][b] +
 * add[h][b]. It is in memory, because instructions can load parts of vectors from there; between
 * registers they would be shuffles, of which a processor does one a cycle. */
struct loose_unit {
    uint16 q[2];
    float factor[2][4], add[2][4];
};
/* Returns a number from memory in all lanes. */
static inline float16
spread(const float *p)
{
#ifdef __AVX512F__
    float16 v;
    __asm__("vbroadcastss %1,%0" : "=vr"(v) : "m"(*p));
    return v;
#else
    return *p;
#endif
}

__attribute__((always_inline)) static inline void
put_unit(struct loose_unit *u, uint16 *out)
{
#pragma unroll
    for (uint b = 0; b < 4; b++) {
        float16 v[2];
#pragma unroll
        for (uint h = 0; h < 2; h++) {
            const uchar16 q = *((const uchar16 *)&u->q[h] + b);
            v[h] = __builtin_convertvector(q, float16) * spread(&u->factor[h][b]) +
                   spread(&u->add[h][b]);
        }
        out[b] = bf16_words(v[0], v[1]);
    }
}

/* Decodes a unit into row r of `out`, as unit_rows.h requires. */
#if BLOCKS
__attribute__((always_inline)) static inline void
put_blocks_unit(const struct unit *u, int zero, uint r, struct rows_unit *out)
{
    const float4 f0 = u->factor[0].s048c, f1 = u->factor[1].s048c;
    const float z = (float)-zero;
    struct loose_unit v = {{u->q[0], u->q[1]}};
    vstore4(f0, 0, v.factor[0]);
    vstore4(f1, 0, v.factor[1]);
    vstore4(f0 * z - u->minimum.even, 0, v.add[0]);
    vstore4(f1 * z - u->minimum.odd, 0, v.add[1]);
    put_unit(&v, out->words[r]);
}
#else
__attribute__((always_inline)) static inline void
put_group_unit(const struct unit *u, const struct group_factors *f, uint r,
               struct rows_unit *out)
{
    const float4 add = -f->scale * convert_float4(f->zero);
    struct loose_unit v = {{u->q[0], u->q[1]}};
    for (uint h = 0; h < 2; h++) {
        vstore4(f->scale, 0, v.factor[h]);
        vstore4(add, 0, v.add[h]);
    }
    put_unit(&v, out->words[r]);
}
#endif

#include "unit_rows.h"

typedef float tile_sums[16][16];

/* Prefetches the 32 columns of a tile that are one unit behind those at x. */
static inline void
prefetch_next(__global const uint *x)
{
#pragma unroll
    for (uint i = 0; i < 16; i++)
        prefetch_line((__global const uchar *)(x + UNIT_COLUMNS / 2 * 16 + 16 * i));
}

/* Adds the products of a unit: vectors v and v + 1 of rows (16 rows each) by `count` (1 or 2) tiles
 * at x. */
__attribute__((always_inline)) static inline void
multiply_unit(const struct rows_unit *w, uint v, __global const uint *x, ulong tile_words,
              const uint count, tile_sums *c0, tile_sums *c1)
{
    const uint *rows = (const uint *)w->words[16 * v];
    TILES;
    TILE_LOAD(0, c0[0][0], 16);
    TILE_LOAD(2, c1[0][0], 16);
    if (count > 1) {
        TILE_LOAD(1, c0[1][0], 16);
        TILE_LOAD(3, c1[1][0], 16);
    }
#pragma unroll
    for (uint k = 0; k < UNIT_COLUMNS / 2; k += 16) {
        TILE_LOAD(4, rows + k, ROW_WORDS);
        TILE_LOAD(5, rows + 16 * ROW_WORDS + k, ROW_WORDS);
        TILE_LOAD(6, x + k * 16, 16);
        prefetch_next(x + k * 16);
        TILE_MULTIPLY(0, 4, 6);
        TILE_MULTIPLY(2, 5, 6);
        if (count > 1) {
            TILE_LOAD(7, x + tile_words + k * 16, 16);
            prefetch_next(x + tile_words + k * 16);
            TILE_MULTIPLY(1, 4, 7);
            TILE_MULTIPLY(3, 5, 7);
        }
    }
    TILE_STORE(0, c0[0][0], 16);
    TILE_STORE(2, c1[0][0], 16);
    if (count > 1) {
        TILE_STORE(1, c0[1][0], 16);
        TILE_STORE(3, c1[1][0], 16);
    }
}

/* Computes c for the rows of all vectors, rows[v] being those of vector v, and `tiles` tiles at
 * x. */
static inline void
bf16_gemm(const struct short_rows rows[VECTORS], __global const uint *x, uint tiles,
          tile_sums (*c)[MOST_TILES])
{
    const uint k_count = rows[0].w.k_count, units = (k_count + 127) / UNIT_COLUMNS;
    const ulong tile_words = bf16_tile_words(k_count);
    struct tile_rows from;
    struct rows_unit w;
    begin_rows(rows, &from);
    for (uint v = 0; v < VECTORS; v++)
        for (uint n = 0; n < tiles; n++)
            for (uint r = 0; r < 16; r++)
                vstore16((float16)0, r, c[v][n][0]);
    tiles_begin();
#pragma unroll 1
    for (uint b = 0; b < units; b++, x += UNIT_COLUMNS / 2 * 16) {
        decode_rows(rows, &from, b, &w);
#pragma unroll 1
        for (uint v = 0; v < VECTORS; v += 2) {
            uint n = 0;
#pragma unroll 1
            for (; n + 2 <= tiles; n += 2)
                multiply_unit(&w, v, x + n * tile_words, tile_words, 2, c[v] + n,
                              c[v + 1] + n);
            if (n < tiles)
                multiply_unit(&w, v, x + n * tile_words, tile_words, 1, c[v] + n,
                              c[v + 1] + n);
        }
    }
    tiles_end();
#pragma unroll 1
    for (uint v = 0; v < VECTORS; v++) {
        const float weight = weight_factor(&rows[v].w, rows[v].first);
        for (uint i = 0; i < 16 * tiles && weight != 1.0f; i++)
            vstore16(vload16(i, c[v][0][0]) * weight, i, c[v][0][0]);
    }
}

#ifdef DST
/* Stores tile n of c to y: the first `tokens` tokens, for each the first `count` rows; `step`
 * elements of y from token to token. */
static inline void
put_tile(tile_sums (*c)[MOST_TILES], uint n, uint tokens, uint count,
         __global const float *bias, __global STORAGE(DST) * y, ulong at, ulong step)
{
    float16 f[16][VECTORS];
#pragma unroll 1
    for (uint v = 0; v < VECTORS; v++) {
        uint16 q[16];
#pragma unroll
        for (uint r = 0; r < 16; r++)
            q[r] = as_uint16(vload16(r, c[v][n][0]));
        turn_over(q);
#pragma unroll
        for (uint t = 0; t < 16; t++)
            f[t][v] = as_float16(q[t]);
    }
    for (uint t = 0; t < tokens; t++)
        put_rows(f[t], count, bias, y, at + t * step);
}
#endif
#endif
