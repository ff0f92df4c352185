/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes weights in blocks to halves, one row in each lane, in the order of steps.h. A format
 * defines
 *
 *     STEP_PLACE_<name>     the unit of places, in bytes: rows begin at multiples of it
 *     SPAN_K_<name>         columns of a span, which share a scale
 *     STEP_<name>(span, s)  which step of the super-block is step s of a span; steps of a span are
 *                           equally far apart
 *     SUMS_<name>           products with the sums of x that a super-block takes: 1 with those of
 *                           32 columns; 2, the second with those of the last 16 of these
 *     float <name>_span(data, at, span, b)        decodes a span of the super-block at place `at`
 *                                                 to b[], a step each; returns the span's scale
 *     float <name>_sums(data, at, blocks, b)      sets b[] for the products with the sums:
 *                                                 coefficients for `blocks` blocks of 32 columns,
 *                                                 zeros behind them; returns their factor
 *
 * Rows begin and end at places; the host refuses other rows (primitives/matrix_engine.c). A format
 * without a span of its own uses block_integer_steps.h.
 *
 * Most numbers become halves by a mask and an or: a number q < 2^n of at most ten bits, put below
 * the exponent of 2^n, is the half 2^n + q. One instruction subtracts the offset and multiplies by
 * an integer scale of a part of the span (half_pairs.h), which rounds only large numbers of Q6_K;
 * another instruction multiplies by the span's scale, which rounds (block_gemm.h). Products with
 * sums subtract the minimums.
 */
#include "half_pairs.h"

/* Products are this many times larger, for the reason in element_steps.h. */
#define SCALE_TIMES 16.0f

/* Loads n words from word `at` of the data on. */
static inline void
load_words(__global const uchar *data, uint at, const uint n, uint *words)
{
    __global const uint *from = (__global const uint *)data + at;
#pragma unroll
    for (uint i = 0; i + 4 <= n; i += 4)
        vstore4(vload4(0, from + i), 0, words + i);
#pragma unroll
    for (uint i = n / 4 * 4; i < n; i++)
        words[i] = from[i];
}

/* v shifted left by `left` bits; right if `left` is negative. */
#define MOVED(v, left) ((left) < 0 ? (v) >> (uint)(-(left)) : (v) << (uint)(left))

/* Extracts n words that begin `bits` bits (1 to 32) behind the first bit of n + 1 words. */
static inline void
shift_words(const uint *w, const uint n, uint bits, uint *out)
{
#pragma unroll
    for (uint i = 0; i < n; i++)
        out[i] = w[i] >> 1 >> (bits - 1) | w[i + 1] << (32 - bits);
}

/* Like shift_words, for 0 or 16 bits. The mask is computed by a multiplication, because compilers
 * would make a select of a condition, which is one more instruction. */
static inline void
shift_halves(const uint *w, const uint n, uint bits, uint *out)
{
    const uint mask = bits * 0x0ffff000u;
#pragma unroll
    for (uint i = 0; i < n; i++)
        out[i] = w[i] >> bits | (w[i + 1] << 16 & mask);
}

/* Returns half 0 or 1 of a word. */
static inline float
half_of(uint word, uint i)
{
    return halves(i ? word >> 16 : word).x;
}

/* A step of the 16 numbers of four words: PAIR(q, 0) makes a word of halves of numbers 0 and 2 of a
 * word, PAIR(q, 8) of numbers 1 and 3. */
#define STEP_OF(PAIR, q)                                                                 \
    as_int8((uint8)(PAIR((q)[0], 0), PAIR((q)[0], 8), PAIR((q)[1], 0), PAIR((q)[1], 8),  \
                    PAIR((q)[2], 0), PAIR((q)[2], 8), PAIR((q)[3], 0), PAIR((q)[3], 8)))

/* Returns the coefficients v of a super-block's eight sums as a step of halves: SUM_PARTS times v
 * for the high parts of the sums, v for their low parts. */
static inline int8
sum_coefficients(const float v[8])
{
    uint pairs[8];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        pairs[i] = two_halves(v[2 * i] * SUM_PARTS, v[2 * i + 1] * SUM_PARTS);
        pairs[4 + i] = two_halves(v[2 * i], v[2 * i + 1]);
    }
    return as_int8(vload8(0, pairs));
}

/* Returns (step - offset) * factor for each half of a step. */
static inline int8
scaled_step(int8 step, float factor, float offset)
{
    return as_int8(halves_mad(as_uint8(step), twice(factor), twice(-offset * factor)));
}

/* Returns each half of a step times a factor. */
static inline int8
multiplied_step(int8 step, float factor)
{
    return as_int8(halves_mul(as_uint8(step), twice(factor)));
}

/* Defines SUMS_<name> and <name>_sums for a format without minimums. */
#define NO_SUMS(name)                                                                    \
    enum { SUMS_##name = 0 };                                                            \
    static inline float name##_sums(__global const uchar *data, uint at, uint blocks,    \
                                    int8 *b)                                             \
    {                                                                                    \
        return 0.0f;                                                                     \
    }

/* Words of halves 1024 + q (LOW) and 64 + q (HIGH), where q are the nibbles at bits 0 and 4 of the
 * bytes. */
#define LOW_AS_HALVES(q, at)  ((MOVED(q, -(at)) & 0x000f000fu) | 0x64006400u)
#define HIGH_AS_HALVES(q, at) ((MOVED(q, -(at)) & 0x00f000f0u) | 0x54005400u)

/* Words of halves 1024 + q of unsigned bytes, 1024 + 128 + q of signed ones. */
#define BYTES_AS_HALVES(q, at) ((MOVED(q, -(at)) & 0x00ff00ffu) | 0x64006400u)
#define SIGNED_BYTES(q, at) ((MOVED(q, -(at)) & 0x00ff00ffu) ^ 0x64806480u)

#ifndef SHORT_SPANS
#define SHORT_SPANS 0 /* 1: spans are shorter, so that they take fewer registers */
#endif
#ifndef STEPS_OF_INTEGERS
#define STEPS_OF_INTEGERS 0 /* 1: all formats use the spans of block_integer_steps.h */
#endif
#if !STEPS_OF_INTEGERS
#include "block_plain_steps.h"

#include "block_table_steps.h"

#include "block_k_steps.h"
#endif

#include "block_integer_steps.h"

/* ---- any format -------------------------------------------------------------------------- */

#define SPAN_K(format) PASTE(SPAN_K_, format)
#define SUMS(format)   PASTE(SUMS_, format)

/* Returns which step of the super-block is step s of a span. */
static inline uint
step_of(const uint format, uint span, const uint s)
{
#define STEP(format) PASTE(STEP_, format)(span, s)
    return BY_FORMAT(format, STEP);
}

/* Returns the place of super-block `super` of a row that begins at `place`. */
static inline uint
super_place(const uint format, uint place, uint super)
{
#define SUPER_PLACES(format)                                                             \
    (SUPER_K / PASTE(COLUMNS_, format) * PASTE(BYTES_, format) /                         \
     PASTE(STEP_PLACE_, format))
    return place + super * BY_FORMAT(format, SUPER_PLACES);
}

static inline float
make_span(const uint format, __global const uchar *data, uint at, uint span, int8 *b)
{
#define SPAN_FORMAT(format) PASTE(format, _span)(data, at, span, b)
    return BY_FORMAT(format, SPAN_FORMAT);
}

static inline float
make_sums(const uint format, __global const uchar *data, uint at, uint blocks, int8 *b)
{
#define SUMS_FORMAT(format) PASTE(format, _sums)(data, at, blocks, b)
    return BY_FORMAT(format, SUMS_FORMAT);
}
