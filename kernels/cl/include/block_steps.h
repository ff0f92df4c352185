/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks as halves, a row a lane, in the order of steps.h. A format says
 *
 *     STEP_PLACE_<name>     the unit of places, in bytes: rows begin at multiples of it
 *     SPAN_K_<name>         columns of a span, which share a factor
 *     STEP_<name>(span, s)  which step of the super-block is step s of a span; steps of a span are
 *                           equally far apart
 *     SUMS_<name>           products with the sums of x that a super-block takes: 1 with those of
 *                           32 columns; 2, the second with those of the last 16 of these
 *     float <name>_span(data, at, span, b)        makes b of a span of the super-block at place
 *                                                 `at`, a step each; returns the span's factor
 *     float <name>_sums(data, at, blocks, b)      makes b of the products with the sums:
 *                                                 coefficients for `blocks` blocks of 32 columns,
 *                                                 zeros behind them; returns their factor
 *
 * Rows begin and end at places: the host refuses others (primitives/matrix_engine.c). A format
 * without a span of its own has that of block_integer_steps.h.
 *
 * Most numbers become halves by a mask and an or: a number q < 2^n of at most ten bits, put below
 * the exponent of 2^n, is the half 2^n + q. One instruction takes the offset off and multiplies by
 * an integer factor of a part of the span (half_pairs.h). Products with sums take off minimums.
 * Nothing is rounded, but large numbers of Q6_K.
 */
#include "half_pairs.h"

#define MOST_STEPS 4 /* of a span */

/* n words from word `at` on. */
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

/* v moved left by `left` bits; to the right where that is negative. */
#define MOVED(v, left) ((left) < 0 ? (v) >> (uint)(-(left)) : (v) << (uint)(left))

/* n words that begin `bits` bits (1 to 32) behind the first of n + 1. */
static inline void
shift_words(const uint *w, const uint n, uint bits, uint *out)
{
#pragma unroll
    for (uint i = 0; i < n; i++)
        out[i] = w[i] >> 1 >> (bits - 1) | w[i + 1] << (32 - bits);
}

/* The same for 0 or 16 bits. The mask is a product, because compilers would make a select of a
 * condition, which is one more instruction. */
static inline void
shift_halves(const uint *w, const uint n, uint bits, uint *out)
{
    const uint mask = bits * 0x0ffff000u;
#pragma unroll
    for (uint i = 0; i < n; i++)
        out[i] = w[i] >> bits | (w[i + 1] << 16 & mask);
}

/* Half 0 or 1 of a word. */
static inline float
half_of(uint word, uint i)
{
    return halves(i ? word >> 16 : word).x;
}

/* A step of the 16 numbers of four words: PAIR(q, 0) makes halves of numbers 0 and 2 of a word,
 * PAIR(q, 8) of 1 and 3. */
#define STEP_OF(PAIR, q)                                                                 \
    as_int8((uint8)(PAIR((q)[0], 0), PAIR((q)[0], 8), PAIR((q)[1], 0), PAIR((q)[1], 8),  \
                    PAIR((q)[2], 0), PAIR((q)[2], 8), PAIR((q)[3], 0), PAIR((q)[3], 8)))

/* The coefficients v of a super-block's eight sums, as halves: SUM_PARTS times v for the high parts
 * of the sums, v for the low ones. */
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

/* A step of halves, each less an offset, times a factor. */
static inline int8
scaled_step(int8 step, float factor, float offset)
{
    return as_int8(halves_mad(as_uint8(step), twice(factor), twice(-offset * factor)));
}

/* A step of halves times a factor. */
static inline int8
multiplied_step(int8 step, float factor)
{
    return as_int8(halves_mul(as_uint8(step), twice(factor)));
}

/* Formats without minimums. */
#define NO_SUMS(name)                                                                    \
    enum { SUMS_##name = 0 };                                                            \
    static inline float name##_sums(__global const uchar *data, uint at, uint blocks,    \
                                    int8 *b)                                             \
    {                                                                                    \
        return 0.0f;                                                                     \
    }

/* ---- blocks of 32 columns: a half and bytes; a pair is whole words -------------------------- */

/* The word that has a block's half, as half 0, as half 1 if the block is odd; pairs of blocks have
 * `words` words. */
static inline uint
paired_word(const uint words, uint block)
{
    return block / 2 * words + block % 2 * (words / 2);
}

/* Loads the n words behind the half of a block; returns the half. */
static inline float
load_paired(__global const uchar *data, uint at, uint block, const uint n, uint *q)
{
    uint w[9];
    load_words(data, at + paired_word(2 * n + 1, block), n + 1, w);
    const uint bits = block % 2 ? 0 : 16, mask = block % 2 ? 0 : 0xffff;
#pragma unroll
    for (uint i = 0; i < n; i++)
        q[i] = w[i + 1] << bits | (w[i] >> 16 & mask);
    return half_of(w[0], block % 2);
}

/* Halves 1024 + q and 64 + q, q the nibbles at bits 0 and 4 of the bytes. */
#define LOW_AS_HALVES(q, at)  ((MOVED(q, -(at)) & 0x000f000fu) | 0x64006400u)
#define HIGH_AS_HALVES(q, at) ((MOVED(q, -(at)) & 0x00f000f0u) | 0x54005400u)

/* Halves 1024 + q of bytes, 1024 + 128 + q of signed ones. */
#define BYTES_AS_HALVES(q, at) ((MOVED(q, -(at)) & 0x00ff00ffu) | 0x64006400u)
#define SIGNED_BYTES(q, at) ((MOVED(q, -(at)) & 0x00ff00ffu) ^ 0x64806480u)

#ifdef FORMAT_q4_0
#define STEP_PLACE_q4_0 4
#define SPAN_K_q4_0     32
#define STEP_q4_0(span, s) (2 * (span) + (s))

static inline float
q4_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[4];
    const float d = load_paired(data, at, span, 4, q);
    b[0] = scaled_step(STEP_OF(LOW_AS_HALVES, q), 1.0f, 1024.0f + 8.0f);
    b[1] = scaled_step(STEP_OF(HIGH_AS_HALVES, q), 1.0f, 64.0f + 8.0f);
    return d;
}

NO_SUMS(q4_0)
#endif

#ifdef FORMAT_q8_0
#define STEP_PLACE_q8_0 4
#define SPAN_K_q8_0     32
#define STEP_q8_0(span, s) (2 * (span) + (s))

static inline float
q8_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[8];
    const float d = load_paired(data, at, span, 8, q);
    b[0] = scaled_step(STEP_OF(SIGNED_BYTES, q), 1.0f, 1024.0f + 128.0f);
    b[1] = scaled_step(STEP_OF(SIGNED_BYTES, q + 4), 1.0f, 1024.0f + 128.0f);
    return d;
}

NO_SUMS(q8_0)
#endif

/* Halves 1024 + q less an offset, 32 of them: four bits of each are nibbles of q, as above, the
 * fifth ones bits of `high`. */
static inline void
five_bit_steps(const uint q[4], uint high, float offset, int8 *b)
{
    /* bits k and k + 2 at k and k + 16, where columns k and k + 2 are a pair */
    const uint low_pairs = (high & 0xffffu) | high << 14;
    const uint high_pairs = high >> 16 | (high >> 2 & 0xffff0000u);
    uint low[8], up[8];
#pragma unroll
    for (int c = 0; c < 8; c++) {
        const int k = c / 2 * 4 + c % 2;
        low[c] =
            LOW_AS_HALVES(q[c / 2], c % 2 * 8) | (MOVED(low_pairs, 4 - k) & 0x00100010u);
        up[c] = HIGH_AS_HALVES(q[c / 2], c % 2 * 8) |
                (MOVED(high_pairs, 8 - k) & 0x01000100u);
    }
    b[0] = scaled_step(as_int8(vload8(0, low)), 1.0f, 1024.0f + offset);
    b[1] = scaled_step(as_int8(vload8(0, up)), 1.0f, 64.0f + offset);
}

#ifdef FORMAT_q5_0
#define STEP_PLACE_q5_0 4
#define SPAN_K_q5_0     32
#define STEP_q5_0(span, s) (2 * (span) + (s))

static inline float
q5_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[5];
    const float d = load_paired(data, at, span, 5, q);
    five_bit_steps(q + 1, q[0], 16.0f, b);
    return d;
}

NO_SUMS(q5_0)
#endif

/* ---- blocks of 32 columns: two halves, scale and minimum, and words ------------------------- */

/* The minimums of a super-block's blocks, which have `words` words each, as coefficients. */
static inline int8
head_coefficients(__global const uchar *data, uint at, uint blocks, const uint words)
{
    float v[8];
#pragma unroll
    for (uint j = 0; j < 8; j++) {
        const uint head = ((__global const uint *)data)[at + min(j, blocks - 1) * words];
        v[j] = j < blocks ? half_of(head, 1) : 0.0f;
    }
    return sum_coefficients(v);
}

#ifdef FORMAT_q4_1
#define STEP_PLACE_q4_1 4
#define SPAN_K_q4_1     32
#define SUMS_q4_1       1
#define STEP_q4_1(span, s) (2 * (span) + (s))

static inline float
q4_1_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint w[5];
    load_words(data, at + 5 * span, 5, w);
    b[0] = scaled_step(STEP_OF(LOW_AS_HALVES, w + 1), 1.0f, 1024.0f);
    b[1] = scaled_step(STEP_OF(HIGH_AS_HALVES, w + 1), 1.0f, 64.0f);
    return half_of(w[0], 0);
}

static inline float
q4_1_sums(__global const uchar *data, uint at, uint blocks, int8 *b)
{
    b[0] = head_coefficients(data, at, blocks, 5);
    return 1.0f / SUM_SCALE;
}
#endif

#ifdef FORMAT_q5_1
#define STEP_PLACE_q5_1 4
#define SPAN_K_q5_1     32
#define SUMS_q5_1       1
#define STEP_q5_1(span, s) (2 * (span) + (s))

static inline float
q5_1_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint w[6];
    load_words(data, at + 6 * span, 6, w);
    five_bit_steps(w + 2, w[1], 0.0f, b);
    return half_of(w[0], 0);
}

static inline float
q5_1_sums(__global const uchar *data, uint at, uint blocks, int8 *b)
{
    b[0] = head_coefficients(data, at, blocks, 6);
    return 1.0f / SUM_SCALE;
}
#endif

#include "block_table_steps.h"

#include "block_k_steps.h"

#include "block_integer_steps.h"

/* ---- any format -------------------------------------------------------------------------- */

#define SPAN_K(format) PASTE(SPAN_K_, format)
#define SUMS(format)   PASTE(SUMS_, format)

/* Which step of the super-block is step s of a span. */
static inline uint
step_of(const uint format, uint span, const uint s)
{
#define STEP(format) PASTE(STEP_, format)(span, s)
    return BY_FORMAT(format, STEP);
}

/* The place of super-block `super` of a row that begins at `place`. */
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
