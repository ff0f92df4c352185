/* SPDX-License-Identifier: Apache-2.0
 *
 * ROWS rows of weights times 16 or 32 tokens, tokens in lanes:
 *
 *     acc[r][t][lane] = sum_k w[row r][k] x[tile t][k][lane]
 *
 * A block of each row is decoded once into a small buffer; then each of its weights is broadcast
 * and multiplied by the tiles (tile.h). Weights stay row-major as the file has them.
 */
#include "tile.h"

#ifndef ROWS
#define ROWS 8 /* rows of weights at a time: ROWS x 2 accumulators */
#endif

/* Decodes block b of a row to f32, columns in plane order. */
static inline void
dequantise_block(const struct weight *weight, ulong n, uint b, float *out)
{
#if BLOCKS
    vstore16(weights_at(weight, n, b * BLOCK), 0, out);
#elif GROUP
    const uint16 w = block_words(row_bytes(weight, n), b, weight->k_count);
    const float16 s = block_scales(weight, n, b);
    const float16 z = block_zero_points(weight, n, b) * s;
    const uint mask = (1u << (32 / PLANES)) - 1;
#pragma unroll
    for (uint j = 0; j < PLANES; j++)
        vstore16(convert_float16(as_int16((w >> (j * (32 / PLANES))) & mask)) * s - z, j,
                 out);
#else
    __global const uchar *row = row_bytes(weight, n);
    const uint at = b * BLOCK;
    if (weight->k_count - at >= BLOCK) {
        vstore16(FLOATS(WEI, row + (ulong)at * SIZE(WEI)), 0, out);
        return;
    }
    for (uint i = 0; i < BLOCK; i++)
        out[i] = at + i < weight->k_count ? BYTES(WEI, row, at + i) : 0.0f;
#endif
}

/* Computes acc for ROWS stored rows from `first` on (rows behind `last` repeat it) and `tiles` (1
 * or 2) tiles at x, `tile_floats` apart. Always inlined: `tiles` must be a constant and the
 * accumulators registers (several times slower otherwise on PoCL). */
__attribute__((always_inline)) static inline void
gemm_tiles(const struct weight *weight, ulong first, ulong last, __global const float *x,
           ulong tile_floats, const uint tiles, float16 acc[ROWS][2])
{
    float w[ROWS][BLOCK];
    float16 sum0[ROWS], sum1[ROWS];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        sum0[r] = sum1[r] = 0;
#pragma unroll 1
    for (uint b = 0; b * BLOCK < weight->k_count; b++) {
        __global const float *x0 = x + (ulong)b * BLOCK * 16;
        __global const float *x1 = x0 + (tiles > 1 ? tile_floats : 0);
#pragma unroll 1
        for (uint r = 0; r < ROWS; r++)
            dequantise_block(weight, min(first + r, last), b, w[r]);
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

/* Rows whose results are collected (a strip) before they are written as whole cache lines of each
 * token. */
#define STRIP 64

/* Stores tile `which` of acc into rows `at` … of the strip. */
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

/* Writes the first `n` rows of a strip to y for the first `lanes` tokens, whose rows of y are
 * n_count elements apart. */
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
