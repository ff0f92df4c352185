/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights read as 32-bit words in the order of the file, for kernels whose work-items lie
 * along k. Word i of a row holds WORD_VALUES neighbouring weights, the first in its lowest
 * bits. Words are read where rows and groups are whole words, element by element elsewhere.
 */
#include "weights.h"

#define WORD_VALUES_u4   8
#define WORD_VALUES_i4   8
#define WORD_VALUES_u8   4
#define WORD_VALUES_i8   4
#define WORD_VALUES_f16  2
#define WORD_VALUES_bf16 2
#define WORD_VALUES_f32  1
#define WORD_VALUES      PASTE(WORD_VALUES_, WEI)

static inline float
word_u4(uint w, uint i)
{
    return (float)((w >> (4 * i)) & 15u);
}

static inline float
word_i4(uint w, uint i)
{
    return (float)(as_int(w << (28 - 4 * i)) >> 28);
}

static inline float
word_u8(uint w, uint i)
{
    return (float)((w >> (8 * i)) & 255u);
}

static inline float
word_i8(uint w, uint i)
{
    return (float)(as_int(w << (24 - 8 * i)) >> 24);
}

static inline float
word_f16(uint w, uint i)
{
    return half_bits((ushort)(w >> (16 * i)));
}

static inline float
word_bf16(uint w, uint i)
{
    return as_float(i ? w & 0xffff0000u : w << 16);
}

static inline float
word_f32(uint w, uint i)
{
    return as_float(w);
}

/* Weight i of a word, before zero point and scale. */
#define WORD_VALUE(w, i) PASTE(word_, WEI)(w, i)

/* `n` words from element `at` on, which begins a word. */
static inline void
read_words(__global const uchar *data, ulong at, uint n, uint *words)
{
    __global const uint *p = (__global const uint *)(data + at / WORD_VALUES * 4);
    for (uint i = 0; i < n; i++)
        words[i] = p[i];
}

/* The group of weight k of a row, and how many a row has; float weights have one. */
static inline uint
group_at(uint k)
{
#if GROUP
    return k / GROUP;
#else
    return 0;
#endif
}

static inline uint
group_count(uint k_count)
{
#if GROUP
    return k_count / GROUP;
#else
    return 1;
#endif
}

/* A weight's operands; `rows` is N of one expert. */
struct weight {
    __global const uchar *data, *scale, *zp;
    uint rows, k_count;
};

static inline float
zero_point_of(const struct weight *w, ulong n, uint g)
{
    return weight_zero_point(w->zp, n, g, w->rows, group_count(w->k_count));
}

static inline float
scale_of(const struct weight *w, ulong n, uint g)
{
    return weight_scale(w->scale, n, g, w->rows, group_count(w->k_count));
}

/* Weight k of row n, with zero point and scale. */
static inline float
weight_at(const struct weight *w, ulong n, uint k)
{
    const uint g = group_at(k);
    return (weight_raw(w->data, n, k, w->k_count) - zero_point_of(w, n, g)) *
           scale_of(w, n, g);
}
