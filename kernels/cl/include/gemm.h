/* SPDX-License-Identifier: Apache-2.0
 *
 * ROWS rows of weights times 16 or 32 tokens, tokens in lanes:
 *
 *     acc[r][t][lane] = sum_k w[row r][k] x[tile t][k][lane]
 *
 * A block of each row is unpacked once into a small buffer and then broadcast against the tiles
 * (tile.h): as floats, or with I16 as integers less their zero points, two of 16 bits in a word.
 * Weights stay row-major as the file has them.
 */
#include "tile.h"

#ifndef ROWS
#define ROWS 8 /* rows of weights at a time: ROWS x 2 accumulators */
#endif

#if INTEGERS
typedef short short32 __attribute__((ext_vector_type(32)));
#define SHORTS(v) __builtin_astype(v, short32)

/* Words of a block whose scale is the same, and how many such stretches a block has. */
#define STRETCH_WORDS (GROUP < BLOCK ? GROUP / PLANES : 16)
#define STRETCHES     (16 / STRETCH_WORDS)

/* Block b of row n as pairs (tile.h) less their zero points, and the scale of each word. */
static inline void
unpack_block(__global const uchar *data, __global const uchar *scale,
             __global const uchar *zp, ulong n, uint b, uint k_count, uint *pairs,
             float *scales)
{
    const uint groups = k_count / GROUP, mask = PLANES == 8 ? 0xf000fu : 0xff00ffu;
    const uint16 w = block_words(data + n * (k_count / PLANES) * 4, b, k_count);
    const uint16 z = as_uint16(convert_int16(block_zero_points(zp, n, b, groups)));
    const short32 zeros = SHORTS((z & 0xffffu) | z << 16u);
#pragma unroll
    for (uint j = 0; j < PLANES / 2; j++) {
        const short32 q = SHORTS(w >> (j * (32 / PLANES)) & mask);
        vstore16(__builtin_astype(q - zeros, uint16), j, pairs);
    }
    vstore16(block_scales(scale, n, b, groups), 0, scales);
}

/* sum + a[2i] b[2i] + a[2i + 1] b[2i + 1] */
static inline int16
add_pairs(int16 sum, uint a, int16 b)
{
    return sum + __builtin_ia32_pmaddwd512(SHORTS((uint16)a), SHORTS(b));
}

/* The products of stretch s of a block, for one tile or two. */
__attribute__((always_inline)) static inline void
add_stretch(uint (*w)[BLOCK / 2], uint s, __global const int *x0, __global const int *x1,
            const uint tiles, int16 sum0[ROWS], int16 sum1[ROWS])
{
#pragma unroll 1
    for (uint j = 0; j < PLANES / 2; j++) {
        const uint first = j * 16 + s * STRETCH_WORDS;
#pragma unroll 1
        for (uint p = first; p < first + STRETCH_WORDS; p++) {
            const int16 a0 = vload16(p, x0);
            const int16 a1 = tiles > 1 ? vload16(p, x1) : 0;
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                sum0[r] = add_pairs(sum0[r], w[r][p], a0);
                if (tiles > 1)
                    sum1[r] = add_pairs(sum1[r], w[r][p], a1);
            }
        }
    }
}

/* As below. Sums are integers over a stretch, then floats. */
__attribute__((always_inline)) static inline void
gemm_tiles(__global const uchar *data, __global const uchar *scale,
           __global const uchar *zp, ulong first, uint stride, ulong last, uint k_count,
           __global const float *x, ulong tile_floats, const uint tiles,
           float16 acc[ROWS][2])
{
    const uint blocks = (k_count + BLOCK - 1) / BLOCK;
    uint w[ROWS][BLOCK / 2];
    float scales[ROWS][16];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        acc[r][0] = acc[r][1] = 0;
#pragma unroll 1
    for (uint b = 0; b < blocks; b++) {
        __global const int *x0 = (__global const int *)x + b * BLOCK * 8;
        __global const int *x1 = x0 + (tiles > 1 ? tile_floats : 0);
        const float16 scale0 = vload16(b, x + blocks * BLOCK * 8);
        const float16 scale1 =
            tiles > 1 ? vload16(b, x + tile_floats + blocks * BLOCK * 8) : 0;
#pragma unroll 1
        for (uint r = 0; r < ROWS; r++)
            unpack_block(data, scale, zp, min(first + r * stride, last), b, k_count, w[r],
                         scales[r]);
#pragma unroll 1
        for (uint s = 0; s < STRETCHES; s++) {
            int16 sum0[ROWS], sum1[ROWS];
#pragma unroll
            for (uint r = 0; r < ROWS; r++)
                sum0[r] = sum1[r] = 0;
            add_stretch(w, s, x0, x1, tiles, sum0, sum1);
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                const float f = scales[r][s * STRETCH_WORDS];
                acc[r][0] += convert_float16(sum0[r]) * (f * scale0);
                if (tiles > 1)
                    acc[r][1] += convert_float16(sum1[r]) * (f * scale1);
            }
        }
    }
}
#else
/* Block b of row n in f32, k in plane order. */
static inline void
dequantise_block(__global const uchar *data, __global const uchar *scale,
                 __global const uchar *zp, ulong n, uint b, uint k_count, float *out)
{
#if GROUP
    const uint groups = k_count / GROUP;
    const uint16 w = block_words(data + n * (k_count / PLANES) * 4, b, k_count);
    const float16 s = block_scales(scale, n, b, groups);
    const float16 z = block_zero_points(zp, n, b, groups) * s;
    const uint mask = (1u << (32 / PLANES)) - 1;
#pragma unroll
    for (uint j = 0; j < PLANES; j++)
        vstore16(convert_float16(as_int16((w >> (j * (32 / PLANES))) & mask)) * s - z, j,
                 out);
#else
    const ulong at = n * k_count + b * BLOCK;
    if (k_count - b * BLOCK >= BLOCK) {
        vstore16(FLOATS(WEI, data + at * SIZE(WEI)), 0, out);
        return;
    }
    for (uint i = 0; i < BLOCK; i++)
        out[i] = b * BLOCK + i < k_count ? BYTES(WEI, data, at + i) : 0.0f;
#endif
}

/* Rows first, first + stride, … (the last ones repeat row `last`); x holds `tiles` (1 or 2)
 * tiles, `tile_floats` apart. Inlined by force: `tiles` must be a constant and the accumulators
 * registers (several times slower otherwise on PoCL). */
__attribute__((always_inline)) static inline void
gemm_tiles(__global const uchar *data, __global const uchar *scale,
           __global const uchar *zp, ulong first, uint stride, ulong last, uint k_count,
           __global const float *x, ulong tile_floats, const uint tiles,
           float16 acc[ROWS][2])
{
    float w[ROWS][BLOCK];
    float16 sum0[ROWS], sum1[ROWS];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        sum0[r] = sum1[r] = 0;
#pragma unroll 1
    for (uint b = 0; b * BLOCK < k_count; b++) {
        __global const float *x0 = x + (ulong)b * BLOCK * 16;
        __global const float *x1 = x0 + (tiles > 1 ? tile_floats : 0);
#pragma unroll 1
        for (uint r = 0; r < ROWS; r++)
            dequantise_block(data, scale, zp, min(first + r * stride, last), b, k_count,
                             w[r]);
#pragma unroll 1
        for (uint k = 0; k < BLOCK; k++) {
            const float16 a0 = vload16(k, x0);
            const float16 a1 = tiles > 1 ? vload16(k, x1) : (float16)0;
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                sum0[r] += w[r][k] * a0;
                if (tiles > 1)
                    sum1[r] += w[r][k] * a1;
            }
        }
    }
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        acc[r][0] = sum0[r];
        acc[r][1] = sum1[r];
    }
}
#endif

/* Rows whose results are collected before they are written: whole cache lines of each token. */
#define STRIP 64

/* Tile `which` of ROWS rows from row `at` of the strip on. */
static inline void
collect(float16 acc[ROWS][2], uint which, uint at, float (*strip)[STRIP])
{
    float lanes[ROWS][16];
    for (uint r = 0; r < ROWS; r++)
        vstore16(acc[r][which], 0, lanes[r]);
    for (uint lane = 0; lane < 16; lane++)
        for (uint r = 0; r < ROWS; r++)
            strip[lane][at + r] = lanes[r][lane];
}

#ifdef DST
/* The first `n` rows of a strip for the first `lanes` tokens, whose rows of y are n_count apart. */
static inline void
write_strip(const float (*strip)[STRIP], uint n, uint lanes, __global const float *bias,
            __global STORAGE(DST) * y, ulong n_count)
{
    for (uint lane = 0; lane < lanes; lane++, y += n_count) {
        uint i = 0;
        for (; i + 16 <= n; i += 16) {
            const float16 v = vload16(0, strip[lane] + i);
            STORE16(DST, y, i, bias ? v + vload16(0, bias + i) : v);
        }
        for (; i < n; i++)
            STORE(DST, y, i, strip[lane][i] + (bias ? bias[i] : 0.0f));
    }
}
#endif
