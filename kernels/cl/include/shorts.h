/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of activations as 16-bit integers, for products with VNNI (short_gemm.h, short_gemv.h).
 *
 *     [blocks][planes / 2][16]  32-bit words, each two of k: word j * 16 + i of a block is
 *                               k = i * planes + j and that + planes / 2, what a mask leaves of
 *                               word i of a row of weights
 *     [blocks]                  f32: what the integers of a block are multiplied with
 *     and what else prepared rows have: prepared.h
 *
 * or, for weights in blocks (block_units.h), blocks of 128 of k as
 *
 *     [blocks][2][2][16]  word 4 b + j of part h, p has k = 32 b + 16 h + 4 j + p and that + 2
 *     [blocks]            as above
 *
 * A block is 16 * planes of k, as in planes.h. Exact to 2^-16 of a block's largest. Where a number
 * is infinite or not one, its block's factor says so.
 */
#include "vector.h"

/* sum + a[2i] b[2i] + a[2i + 1] b[2i + 1] of 16-bit numbers.
 *
 *   VNNI   1: the processor has AVX-512 VNNI; else it takes two instructions, as where the
 *          compiler builds for a lesser one
 */
#ifndef VNNI
#define VNNI 0
#endif
static inline int16
add_pairs(int16 sum, int16 a, int16 b)
{
#if VNNI && (defined(__AVX512F__) || !defined(__x86_64__))
    __asm__("vpdpwssd %2,%1,%0" : "+vr"(sum) : "vr"(a), "vr"(b));
    return sum;
#elif defined(__AVX512BW__)
    typedef short shorts __attribute__((vector_size(64)));
    return sum + __builtin_astype(__builtin_ia32_pmaddwd512(__builtin_astype(a, shorts),
                                                            __builtin_astype(b, shorts)),
                                  int16);
#elif defined(__AVX2__)
    typedef short shorts __attribute__((vector_size(32)));
    return sum + (int16)(__builtin_astype(
                             __builtin_ia32_pmaddwd256(__builtin_astype(a.lo, shorts),
                                                       __builtin_astype(b.lo, shorts)),
                             int8),
                         __builtin_astype(
                             __builtin_ia32_pmaddwd256(__builtin_astype(a.hi, shorts),
                                                       __builtin_astype(b.hi, shorts)),
                             int8));
#else
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* Elements 16 i ... 16 i + 15 of a block as words: the lower half of each group of `planes`
 * beside the upper one. */
static inline int8
pair_up(int16 q, const uint planes)
{
    const int8 low =
        planes == 8 ? (int8)(q.s0123, q.s89ab) : (int8)(q.s01, q.s45, q.s89, q.scd);
    const int8 high =
        planes == 8 ? (int8)(q.s4567, q.scdef) : (int8)(q.s23, q.s67, q.sab, q.sef);
    return (low & 0xffff) | high << 16;
}

/* Words [16][planes / 2] -> [planes / 2][16]. */
static inline void
store_planes(const int16 *w, const uint planes, __global int *to)
{
    if (planes == 4) {
        vstore16((int16)(w[0].even, w[1].even), 0, to);
        vstore16((int16)(w[0].odd, w[1].odd), 1, to);
        return;
    }
    const int16 a = (int16)(w[0].even, w[1].even), b = (int16)(w[2].even, w[3].even);
    const int16 c = (int16)(w[0].odd, w[1].odd), d = (int16)(w[2].odd, w[3].odd);
    vstore16((int16)(a.even, b.even), 0, to);
    vstore16((int16)(c.even, d.even), 1, to);
    vstore16((int16)(a.odd, b.odd), 2, to);
    vstore16((int16)(c.odd, d.odd), 3, to);
}

/* Block b of a row from the 16 * planes floats at v; `halves`: as weights in blocks meet it. */
__attribute__((always_inline)) static inline void
write_shorts(const float *v, const uint planes, const bool halves, __global int *row,
             uint b, uint blocks)
{
    float16 most = 0, wrong = 0;
    for (uint i = 0; i < planes; i++) {
        const float16 x = vload16(i, v);
        most = fmax(most, fabs(x));
        wrong += x * 0.0f;
    }
    const float8 m8 = fmax(most.lo, most.hi);
    const float4 m4 = fmax(m8.lo, m8.hi);
    const float largest = fmax(fmax(m4.x, m4.y), fmax(m4.z, m4.w));
    const float factor = largest > 1e-30f ? 32767.0f / largest : 0.0f;
    int16 words[4] = {0};
    row[blocks * 8 * planes + b] = as_int(largest / 32767.0f + sum16(wrong));
    if (halves) {
        for (uint i = 0; i < 4; i++) {
            const float16 first = vload16(i % 2 * 4 + i / 2, v);
            const float16 second = vload16(i % 2 * 4 + i / 2 + 2, v);
            words[i] = (int16)(pair_up(convert_int16_rte(first * factor), 4),
                               pair_up(convert_int16_rte(second * factor), 4));
        }
        store_planes(words, 4, row + b * 64);
        store_planes(words + 2, 4, row + b * 64 + 32);
        return;
    }
    for (uint i = 0; i < planes / 2; i++)
        words[i] =
            (int16)(pair_up(convert_int16_rte(vload16(2 * i, v) * factor), planes),
                    pair_up(convert_int16_rte(vload16(2 * i + 1, v) * factor), planes));
    store_planes(words, planes, row + b * 8 * planes);
}
