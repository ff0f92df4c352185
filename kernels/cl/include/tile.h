/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of activations for the products of many tokens: 16 tokens in lanes, k block by block in
 * the order in which a block of weights falls apart (planes.h). Two forms of a block:
 *
 *   floats    [plane_position(k)][lane], f32
 *   integers  [pair][lane][2] of 16 bits, and behind all blocks one f32 scale a block and lane.
 *             Pair j * 16 + i is k = i * PLANES + j and that + PLANES / 2: what a mask leaves of
 *             word i. Exact to 2^-16 of the largest of a block: enough beside f16 activations,
 *             and two products an instruction.
 *
 * Both fit into K * 16 floats. Integers need a compiler that tells of AVX-512 BW; others get
 * floats though the host allowed integers.
 */
#include "planes.h"

#ifndef I16
#define I16 0 /* 1: the tiles that the weight meets may be integers */
#endif
#if I16 && GROUP && defined(__AVX512BW__)
#define INTEGERS 1
#else
#define INTEGERS 0
#endif

/* v: [16 planes][16 lanes], k in natural order. */
static inline void
write_block(const float *v, const uint planes, const bool integers, __global float *tile,
            uint b, uint blocks)
{
    const uint n = 16 * planes, half_planes = planes / 2;
    if (!integers) {
        for (uint k = 0; k < n; k++)
            vstore16(vload16(k, v), b * n + plane_position(k, planes), tile);
        return;
    }
    float16 most = 0;
    for (uint k = 0; k < n; k++)
        most = fmax(most, fabs(vload16(k, v)));
    const float16 inverse = most > 0 ? 32767.0f / most : 0;
    vstore16(most / 32767.0f, b, tile + blocks * n * 8);
    for (uint j = 0; j < half_planes; j++) {
        for (uint i = 0; i < 16; i++) {
            const uint k = i * planes + j;
            const int16 low = convert_int16_rte(vload16(k, v) * inverse);
            const int16 high = convert_int16_rte(vload16(k + half_planes, v) * inverse);
            vstore16(as_float16((low & 0xffff) | high << 16), b * n / 2 + j * 16 + i,
                     tile);
        }
    }
}

#ifdef SRC
/* The n elements at x, then zeros, become lane `lane` of a block. */
static inline void
put_row(__global const STORAGE(SRC) * x, uint n, uint lane, float *v)
{
    float row[BLOCK];
    uint k = 0;
    for (; k + 16 <= n; k += 16)
        vstore16(LOAD16(SRC, x, k), 0, row + k);
    for (; k < BLOCK; k++)
        row[k] = k < n ? LOAD(SRC, x, k) : 0.0f;
    for (k = 0; k < BLOCK; k++)
        v[k * 16 + lane] = row[k];
}
#endif
