/* SPDX-License-Identifier: Apache-2.0
 *
 * SG rows of weights, one in each lane, times the tokens of a tile:
 *
 *     acc[m][t] = sum_k w[m][row of the lane][k] x[k][t]        m < MATRICES, t < TOKENS
 *
 * A tile is [K padded][16 tokens], k in plane order (planes.h). A block read gives the columns of
 * one plane of neighbouring words, with tokens in lanes; each token is broadcast and multiplied by
 * the lane's weights. STEP words of the lane's row stay in registers for all their planes and are
 * dequantised once for a tile, so that nothing is exchanged through local memory. K is whole steps.
 * If the tile is half and the device computes in half, weights are half, too; sums are float.
 *
 *   MATRICES  matrices that the same tile is multiplied with (gate and up: 2)
 *   TILE      f32, or f16
 */
#include "planes.h"
#include "sub_group.h"

#if SG != 16
#error "a tile has 16 tokens: SG is 16"
#endif
#ifndef MATRICES
#define MATRICES 1 /* 1 or 2 */
#endif
#ifndef TILE
#define TILE f32 /* element of the tile */
#endif

/* Tokens of a tile that a sub-group multiplies: the sums fill half of 128 registers. */
#define TOKENS (16 / MATRICES)
/* Words of a row at a time: those that match one block read of the tile. */
#if IS_HALF(TILE)
#define STEP              8
#define VLOAD_STEP(p, to) vstore8(vload8(0, p), 0, to)
#elif MATRICES == 2 && PLANES == 4
/* compilers unroll the four planes; 4 words of each would not fit into registers */
#define STEP              2
#define VLOAD_STEP(p, to) vstore2(vload2(0, p), 0, to)
#else
#define STEP              4
#define VLOAD_STEP(p, to) vstore4(vload4(0, p), 0, to)
#endif

#if BLOCKS
#define STEP_WORDS 8          /* weights of a row kept at once */
#define PARTS      (8 / STEP) /* pieces of the tile multiplied by them */
#define RUN_WORDS  16 /* weights that one decoding yields */
#define PART_STEP  (STEP * 16)
#define AT_ONCE    1 /* matrices at once */
#else
#define STEP_WORDS STEP
#define PARTS      PLANES
#define RUN_WORDS  STEP
#define PART_STEP  256
#define AT_ONCE    MATRICES
#endif

#if GROUP % PLANES
#error "a group is whole words"
#endif

#if IS_HALF(TILE) && defined(cl_khr_fp16)
typedef half weight_t;
#else
typedef float weight_t;
#endif

/* A matrix and this lane's stored row of it. */
struct lane_row {
    struct weight w;
    ulong n;
    ulong begin; /* its first element */
};

static inline struct lane_row
lane_row_at(const struct weight *w, ulong n)
{
#if BLOCKS
    return (struct lane_row){*w, n, 0};
#else
    return (struct lane_row){*w, n, row_begin(w, n)};
#endif
}

/* Words [first, first + STEP) of a row, and scale and zero of each: w = (q - zero) scale. */
struct lane_words {
#if GROUP
    uint word[STEP];
    float scale[STEP], zero[STEP];
#else
    float value[STEP_WORDS];
#endif
};

static inline void
load_words(const struct lane_row *row, uint first, struct lane_words *to)
{
    const struct weight *w = &row->w;
#if BLOCKS
    const float16 v = weights_at(w, row->n, first / 16 * 16);
    vstore8(first % 16 ? v.hi : v.lo, 0, to->value);
#elif GROUP
    const ulong at = row->begin / PLANES + first;
    VLOAD_STEP((__global const uint *)w->data + at, to->word);
#pragma unroll
    for (uint i = 0; i < STEP; i++) {
        to->word[i] ^= FLIP;
#if GROUP % (STEP * PLANES) == 0
        if (i > 0) {
            to->scale[i] = to->scale[0];
            to->zero[i] = to->zero[0];
            continue;
        }
#endif
        const uint g = (first + i) * PLANES / GROUP;
        const ulong at_scale = scale_behind(w, row->n, row->begin, g);
        to->scale[i] = ALIGNED(SCALE, w->scale, at_scale);
        to->zero[i] = zero_point_at(w, at_scale) + OFFSET;
    }
#else
#pragma unroll
    for (uint i = 0; i < STEP; i++)
        to->value[i] = ALIGNED(WEI, w->data, row->begin + first + i);
#endif
}

static inline weight_t
weight_of(const struct lane_words *w, uint i, uint plane)
{
#if GROUP
    const uint q = (w->word[i] >> (plane * (32 / PLANES))) & ((1u << (32 / PLANES)) - 1);
    return (weight_t)(((float)q - w->zero[i]) * w->scale[i]);
#else
    return (weight_t)w->value[(BLOCKS ? plane * STEP : 0) + i];
#endif
}

/* Loads STEP positions of the tile from p on; token t is in lane t. */
static inline void
load_tile(__global const STORAGE(TILE) * p, weight_t to[STEP])
{
#if IS_HALF(TILE)
    const ushort8 all = intel_sub_group_block_read_us8((__global const ushort *)p);
    ushort bits[STEP];
    vstore8(all, 0, bits);
#pragma unroll
    for (uint i = 0; i < STEP; i++)
#ifdef cl_khr_fp16
        to[i] = as_half(bits[i]);
#else
        to[i] = half_bits(bits[i]);
#endif
#elif STEP == 2
    vstore2(as_float2(intel_sub_group_block_read2((__global const uint *)p)), 0, to);
#else
    vstore4(as_float4(intel_sub_group_block_read4((__global const uint *)p)), 0, to);
#endif
}

/* acc += w x over the columns of one plane of STEP words. */
static inline void
add_plane(const struct lane_words w[AT_ONCE], uint plane, const weight_t x[STEP],
          uint first_token, float acc[AT_ONCE][TOKENS])
{
#pragma unroll
    for (uint i = 0; i < STEP; i++) {
        weight_t tokens = x[i]; /* tokens from first_token on, beginning in lane 0 */
        if (TOKENS < 16)
            tokens = intel_sub_group_shuffle(
                tokens, (get_sub_group_local_id() + first_token) % 16);
#pragma unroll
        for (uint m = 0; m < AT_ONCE; m++) {
            const weight_t v = weight_of(&w[m], i, plane);
#pragma unroll
            for (uint t = 0; t < TOKENS; t++)
                acc[m][t] += (float)intel_sub_group_shuffle(tokens, t) * (float)v;
        }
    }
}

/* acc += the products of weights [first, first + STEP_WORDS) of each row with the tile. */
static inline void
add_words(const struct lane_row row[AT_ONCE], uint first,
          __global const STORAGE(TILE) * tile, uint first_token,
          float acc[AT_ONCE][TOKENS])
{
    struct lane_words w[AT_ONCE];
    tile += (first / 16 * BLOCK + first % 16) * 16;
#pragma unroll
    for (uint m = 0; m < AT_ONCE; m++)
        load_words(&row[m], first, &w[m]);
#if BLOCKS /* the loop index must be a constant, so that values stay in registers */
#pragma unroll
#else
#pragma unroll 1
#endif
    for (uint plane = 0; plane < PARTS; plane++) {
        weight_t x[STEP];
        load_tile(tile + plane * PART_STEP, x);
        add_plane(w, plane, x, first_token, acc);
    }
}

/* Computes the products of the rows with tokens [first_token, first_token + TOKENS) of a tile. */
static inline void
multiply_tile(const struct lane_row row[MATRICES], __global const STORAGE(TILE) * tile,
              uint first_token, float acc[MATRICES][TOKENS])
{
#pragma unroll
    for (uint m = 0; m < MATRICES; m++) {
#pragma unroll
        for (uint t = 0; t < TOKENS; t++)
            acc[m][t] = 0.0f;
    }
#pragma unroll
    for (uint m = 0; m < MATRICES; m += AT_ONCE) {
#pragma unroll 1
        for (uint first = 0; first * PLANES < row[0].w.k_count; first += RUN_WORDS) {
#pragma unroll
            for (uint i = 0; i < RUN_WORDS; i += STEP_WORDS)
                add_words(row + m, first + i, tile, first_token, acc + m);
        }
    }
}
