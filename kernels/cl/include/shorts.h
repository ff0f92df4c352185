/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of activations as 16-bit integers, for products with VNNI (short_gemm.h, short_gemv.h).
 *
 *     [blocks][planes / 2][16]  32-bit words, each two of k: word j * 16 + i of a block is
 *                               k = i * planes + j and that + planes / 2, what a mask leaves of
 *                               word i of a row of weights
 *     [blocks]                  f32: the scale of the integers of a block
 *     and the sums that prepared rows have: prepared.h
 *
 * or, for weights in blocks (block_units.h), blocks of 128 of k as
 *
 *     [blocks][2][2][16]  if bytes are multiplied (BYTE_DOTS): byte i of word 4 b + j of part h, p
 *                         is the high (p = 0) or the low (p = 1) byte of the integer
 *                         256 high + low, both signed, of k = 32 b + 16 h + 4 j + i. Else the word
 *                         has the 16-bit integers of the k with i = p and i = p + 2
 *     [blocks]            as above
 *     [blocks][8]         minus the sum of each 16 integers, for weights with a zero point
 *
 * A block is 16 * planes of k, as in planes.h. Exact to 2^-16 of a block's largest magnitude. If a
 * number is infinite or NaN, its block's scale is NaN.
 */
#include "short_pairs.h"
#include "vector.h"

/* sum + a[2i] b[2i] + a[2i + 1] b[2i + 1] of 16-bit numbers.
 *
 *   VNNI, AVX_VNNI   1: the processor has AVX-512 VNNI, AVX-VNNI. Without them, or if the compiler
 *                    builds for an older processor, it takes two instructions
 */
#ifndef VNNI
#define VNNI 0
#endif
#ifndef AVX_VNNI
#define AVX_VNNI 0
#endif
#if VNNI && (defined(__AVX512F__) || !defined(__x86_64__))
#define WIDE_DOTS   1
#define NARROW_DOTS 0
#elif AVX_VNNI && defined(__AVX2__)
#define WIDE_DOTS   0
#define NARROW_DOTS 1
#else
#define WIDE_DOTS   0
#define NARROW_DOTS 0
#endif
#define BYTE_DOTS (WIDE_DOTS || NARROW_DOTS) /* 1: weights in blocks are multiplied as bytes */
/* BYTE_MADDS 1: bytes are multiplied by AVX2's pmaddubsw, whose sums of two products have 16
 * bits. */
#if !BYTE_DOTS && defined(__AVX2__) && !defined(__AVX512BW__)
#define BYTE_MADDS 1
#else
#define BYTE_MADDS 0
#endif
/* BYTE_PRODUCTS 1: that instruction is available, and the fastest for some or all products of
 * bytes. */
#if BYTE_MADDS || (BYTE_DOTS && defined(__AVX2__))
#define BYTE_PRODUCTS 1
#else
#define BYTE_PRODUCTS 0
#endif
/* IN_SHORTS 1: its sums fit into 16 bits. SHORT_SUMS: how many such sums, of weights of UNIT_BITS
 * bits with 8-bit x, can be added in 16 bits. */
#define IN_SHORTS  (BYTE_MADDS && X_BYTES && UNIT_BITS < 8)
#define SHORT_SUMS (128 >> UNIT_BITS)

/* sum += products of vectors a and b by one instruction; two of AVX-VNNI, which have half a vector
 * each. The {vex} prefix selects AVX-VNNI's encoding instead of AVX-512's. */
#if WIDE_DOTS
#define ADD_DOTS(name, sum, a, b)                                                                  \
    __asm__(name " %2,%1,%0" : "+vr"(sum) : "vr"(a), "vr"(b));
#elif NARROW_DOTS
#define ADD_DOTS(name, sum, a, b)                                                                  \
    __asm__("%{vex%} " name " %2,%1,%0" : "+x"(sum.lo) : "x"(a.lo), "x"(b.lo));                    \
    __asm__("%{vex%} " name " %2,%1,%0" : "+x"(sum.hi) : "x"(a.hi), "x"(b.hi));
#endif

#if defined(__AVX2__) && !defined(__AVX512BW__)
static inline int8
add_pairs8(int8 sum, int8 a, int8 b)
{
    typedef short shorts __attribute__((vector_size(32)));
    return sum + __builtin_astype(__builtin_ia32_pmaddwd256(__builtin_astype(a, shorts),
                                                            __builtin_astype(b, shorts)),
                                  int8);
}
#endif

static inline int16
add_pairs(int16 sum, int16 a, int16 b)
{
#if BYTE_DOTS
    ADD_DOTS("vpdpwssd", sum, a, b)
    return sum;
#elif defined(__AVX512BW__)
    typedef short shorts __attribute__((vector_size(64)));
    return sum + __builtin_astype(__builtin_ia32_pmaddwd512(__builtin_astype(a, shorts),
                                                            __builtin_astype(b, shorts)),
                                  int16);
#elif defined(__AVX2__)
    return (int16)(add_pairs8(sum.lo, a.lo, b.lo), add_pairs8(sum.hi, a.hi, b.hi));
#else
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

#if BYTE_PRODUCTS && defined(SHORTS) && SHORTS
/* Returns sums of two neighbouring products of the unsigned bytes of a and the signed bytes of b.
 * The caller guarantees that they fit into 16 bits. */
static inline short16
byte_products8(uint8 a, int8 b)
{
    typedef char bytes __attribute__((vector_size(32)));
    return __builtin_astype(__builtin_ia32_pmaddubsw256(__builtin_astype(a, bytes),
                                                        __builtin_astype(b, bytes)),
                            short16);
}

static inline short32
byte_products(uint16 a, int16 b)
{
#ifdef __AVX512BW__
    typedef char bytes __attribute__((vector_size(64)));
    return __builtin_astype(__builtin_ia32_pmaddubsw512(__builtin_astype(a, bytes),
                                                        __builtin_astype(b, bytes)),
                            short32);
#else
    return AS_SHORTS((int16)(__builtin_astype(byte_products8(a.lo, b.lo), int8),
                             __builtin_astype(byte_products8(a.hi, b.hi), int8)));
#endif
}
#endif

#if BYTE_MADDS && defined(SHORTS) && SHORTS
/* Returns v with each byte negated (or zeroed) by the sign of the byte of s. */
static inline int16
signed_as(int16 v, int16 s)
{
    typedef char bytes __attribute__((vector_size(32)));
    return (int16)(__builtin_astype(__builtin_ia32_psignb256(__builtin_astype(v.lo, bytes),
                                                             __builtin_astype(s.lo, bytes)),
                                    int8),
                   __builtin_astype(__builtin_ia32_psignb256(__builtin_astype(v.hi, bytes),
                                                             __builtin_astype(s.hi, bytes)),
                                    int8));
}

/* Like byte_products, of the bytes of a minus 128; the sums always fit if no byte of b is -128. */
static inline short32
signed_products(uint16 a, int16 b)
{
    const int16 v = as_int16(a ^ 0x80808080u);
    return byte_products(as_uint16(signed_as(v, v)), signed_as(b, v));
}

/* Returns sum plus the sums of neighbouring 16-bit elements of v. */
static inline int16
add_neighbours(int16 sum, short32 v)
{
    return add_pairs(sum, __builtin_astype(v, int16), (int16)0x00010001);
}
#endif

#if BYTE_DOTS || (defined(SHORTS) && SHORTS)
/* Returns sum plus the products of the four bytes of each word: those of a unsigned, those of b
 * signed. */
static inline int16
add_bytes(int16 sum, uint16 a, int16 b)
{
#if BYTE_DOTS
    ADD_DOTS("vpdpbusd", sum, a, b)
    return sum;
#else
    const short32 x = AS_SHORTS(b);
    const int16 even = __builtin_astype(x << (short)8 >> (short)8, int16);
    sum = add_pairs(sum, byte_pairs(a, 0), even);
    return add_pairs(sum, byte_pairs(a, 1), __builtin_astype(x >> (short)8, int16));
#endif
}
#endif

/* Pairs 16 elements of a block into words: in each group of `planes` elements, one of the lower
 * half is in the low half word, the one planes / 2 behind it in the high half word. */
static inline int8
pair_up(int16 q, const uint planes)
{
    const int8 low =
        planes == 8 ? (int8)(q.s0123, q.s89ab) : (int8)(q.s01, q.s45, q.s89, q.scd);
    const int8 high =
        planes == 8 ? (int8)(q.s4567, q.scdef) : (int8)(q.s23, q.s67, q.sab, q.sef);
    return (low & 0xffff) | high << 16;
}

/* Stores words [16][planes / 2] transposed: [planes / 2][16]. */
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

/* Stores integers 16 i ... 16 i + 15 of a block in the order for weights in blocks; returns their
 * sum. */
static inline int
store_sixteen(int16 q, uint i, __global int *block)
{
    const int8 a = q.lo + q.hi;
    const int4 b = a.lo + a.hi;
    block += i % 2 * 32 + i / 2 * 4;
#if BYTE_DOTS
    vstore4(as_int4(convert_uchar16((q + 128) >> 8 & 255)), 0, block);
    vstore4(as_int4(convert_uchar16(q & 255)), 0, block + 16);
#else
    vstore4((q.s048c & 0xffff) | q.s26ae << 16, 0, block);
    vstore4((q.s159d & 0xffff) | q.s37bf << 16, 0, block + 16);
#endif
    return b.x + b.y + b.z + b.w;
}

/* Writes block b of a row from the 16 * planes floats at v. `halves`: in the order for weights in
 * blocks. */
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
    const float range = halves ? 32639.0f : 32767.0f; /* 256 * 127 + 127 */
    const float factor = largest > 1e-30f ? range / largest : 0.0f;
    int16 words[4] = {0};
    row[blocks * 8 * planes + b] = as_int(largest / range + sum16(wrong));
    if (halves) {
        for (uint i = 0; i < 8; i++)
            row[blocks * 65 + b * 8 + i] = -store_sixteen(
                convert_int16_rte(vload16(i, v) * factor), i, row + b * 64);
        return;
    }
    for (uint i = 0; i < planes / 2; i++)
        words[i] =
            (int16)(pair_up(convert_int16_rte(vload16(2 * i, v) * factor), planes),
                    pair_up(convert_int16_rte(vload16(2 * i + 1, v) * factor), planes));
    store_planes(words, planes, row + b * 8 * planes);
}
