/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks as halves, a row a lane, in the order of steps.h. A format says
 *
 *     STEP_PLACE_<name>     the unit of places, in bytes: rows begin at multiples of it
 *     SPAN_K_<name>         columns of a span, which share a factor
 *     STEP_<name>(span, s)  which step of the super-block is step s of a span
 *     SUMS_<name>           products with the sums of x that a super-block takes
 *     float <name>_span(data, at, span, b)        makes b of a span of the super-block at place
 *                                                 `at`, a step each; returns the span's factor
 *     float <name>_sums(data, at, blocks, i, b)   makes b of product i with the sums: coefficients
 *                                                 for `blocks` blocks of 32 columns, zeros behind
 *                                                 them; returns the product's factor
 *
 * Rows begin and end at places: the host refuses others (primitives/matrix_engine.c).
 *
 * Most numbers become halves by a mask and an or: a number q < 2^n of at most ten bits, put below
 * the exponent of 2^n, is the half 2^n + q. The offset 2^n is taken off by the products with sums.
 * Nothing is rounded, but large numbers of Q6_K.
 */
#define MOST_STEPS 4 /* of a span                            */
#define MOST_SUMS  2 /* products with sums, of a super-block */

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

/* The coefficient 1 for all sums. */
static inline int8
equal_coefficients(void)
{
    const float ones[8] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    return sum_coefficients(ones);
}

/* Formats whose numbers need no offset. */
#define NO_SUMS(name)                                                                    \
    static inline float name##_sums(__global const uchar *data, uint at, uint blocks,    \
                                    const uint i, int8 *b)                               \
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

/* The halves of a super-block's blocks, as coefficients. */
static inline int8
paired_coefficients(__global const uchar *data, uint at, uint blocks, const uint n)
{
    float d[8];
#pragma unroll
    for (uint j = 0; j < 8; j++) {
        const uint word = paired_word(2 * n + 1, min(j, blocks - 1));
        const float v = half_of(((__global const uint *)data)[at + word], j % 2);
        d[j] = j < blocks ? v : 0.0f;
    }
    return sum_coefficients(d);
}

/* Halves 16 + q, q the nibbles at bit `at` of the bytes. */
#define LOW_AS_HALVES(q, at)  ((MOVED(q, 6 - (at)) & 0x03c003c0u) | 0x4c004c00u)
#define HIGH_AS_HALVES(q, at) LOW_AS_HALVES(q, (at) + 4)

#ifdef FORMAT_q4_0
#define STEP_PLACE_q4_0 4
#define SPAN_K_q4_0     32
#define SUMS_q4_0       1
#define STEP_q4_0(span, s) (2 * (span) + (s))

static inline float
q4_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[4];
    const float d = load_paired(data, at, span, 4, q);
    b[0] = STEP_OF(LOW_AS_HALVES, q);
    b[1] = STEP_OF(HIGH_AS_HALVES, q);
    return d;
}

/* Numbers are q - 8. */
static inline float
q4_0_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    b[0] = paired_coefficients(data, at, blocks, 4);
    return -(16.0f + 8.0f) / SUM_SCALE;
}
#endif

#ifdef FORMAT_q8_0
#define STEP_PLACE_q8_0 4
#define SPAN_K_q8_0     32
#define SUMS_q8_0       1
#define STEP_q8_0(span, s) (2 * (span) + (s))

/* Halves 256 + 128 + q: the topmost bit of q is flipped. */
#define SIGNED_BYTES(q, at) ((MOVED(q, 2 - (at)) & 0x03fc03fcu) ^ 0x5e005e00u)

static inline float
q8_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[8];
    const float d = load_paired(data, at, span, 8, q);
    b[0] = STEP_OF(SIGNED_BYTES, q);
    b[1] = STEP_OF(SIGNED_BYTES, q + 4);
    return d;
}

static inline float
q8_0_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    b[0] = paired_coefficients(data, at, blocks, 8);
    return -(256.0f + 128.0f) / SUM_SCALE;
}
#endif

/* A step of 16 halves 32 + q: four bits of q at bit `at` of the bytes, the fifth ones from bit
 * `first` of `high` on. */
static inline int8
five_bit_step(const uint q[4], uint high, const int first, const int at)
{
    uint b[8];
#pragma unroll
    for (int c = 0; c < 8; c++) {
        const int bit = first + c / 2 * 4 + c % 2, left = 5 - at - c % 2 * 8;
        b[c] = (MOVED(q[c / 2], left) & 0x01e001e0u) | 0x50005000u |
               (MOVED(high, 9 - bit) & 0x0200u) | (MOVED(high, 23 - bit) & 0x02000000u);
    }
    return as_int8(vload8(0, b));
}

#ifdef FORMAT_q5_0
#define STEP_PLACE_q5_0 4
#define SPAN_K_q5_0     32
#define SUMS_q5_0       1
#define STEP_q5_0(span, s) (2 * (span) + (s))

static inline float
q5_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[5];
    const float d = load_paired(data, at, span, 5, q);
    b[0] = five_bit_step(q + 1, q[0], 0, 0);
    b[1] = five_bit_step(q + 1, q[0], 16, 4);
    return d;
}

/* Numbers are q - 16. */
static inline float
q5_0_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    b[0] = paired_coefficients(data, at, blocks, 5);
    return -(32.0f + 16.0f) / SUM_SCALE;
}
#endif

/* ---- blocks of 32 columns: two halves, scale and minimum, and words ------------------------- */

/* Half i of a super-block's blocks, which have `words` words each, as coefficients. */
static inline int8
head_coefficients(__global const uchar *data, uint at, uint blocks, const uint words,
                  const uint i)
{
    float v[8];
#pragma unroll
    for (uint j = 0; j < 8; j++) {
        const uint head = ((__global const uint *)data)[at + min(j, blocks - 1) * words];
        v[j] = j < blocks ? half_of(head, i) : 0.0f;
    }
    return sum_coefficients(v);
}

#ifdef FORMAT_q4_1
#define STEP_PLACE_q4_1 4
#define SPAN_K_q4_1     32
#define SUMS_q4_1       2
#define STEP_q4_1(span, s) (2 * (span) + (s))

static inline float
q4_1_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint w[5];
    load_words(data, at + 5 * span, 5, w);
    b[0] = STEP_OF(LOW_AS_HALVES, w + 1);
    b[1] = STEP_OF(HIGH_AS_HALVES, w + 1);
    return half_of(w[0], 0);
}

static inline float
q4_1_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    b[0] = head_coefficients(data, at, blocks, 5, i);
    return (i ? 1.0f : -16.0f) / SUM_SCALE;
}
#endif

#ifdef FORMAT_q5_1
#define STEP_PLACE_q5_1 4
#define SPAN_K_q5_1     32
#define SUMS_q5_1       2
#define STEP_q5_1(span, s) (2 * (span) + (s))

static inline float
q5_1_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint w[6];
    load_words(data, at + 6 * span, 6, w);
    b[0] = five_bit_step(w + 2, w[1], 0, 0);
    b[1] = five_bit_step(w + 2, w[1], 16, 4);
    return half_of(w[0], 0);
}

static inline float
q5_1_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    b[0] = head_coefficients(data, at, blocks, 6, i);
    return (i ? 1.0f : -32.0f) / SUM_SCALE;
}
#endif

/* ---- blocks of 32 columns at any byte ------------------------------------------------------- */

#ifdef FORMAT_mxfp4
#define STEP_PLACE_mxfp4 2
#define SPAN_K_mxfp4     32
#define SUMS_mxfp4       0
#define STEP_mxfp4(span, s) (2 * (span) + (s))

/* Floats of 4 bits (sign, e1 e0, m) as the seven topmost bits of halves, a byte each: sign, e1,
 * three times ~e1 (e0 | m), e0, m (e0 | e1). Subnormal ones become normal halves. */
struct fp4_bytes {
    uint low[4], high[4];
};

static inline struct fp4_bytes
fp4_bytes(const uint q[4])
{
    struct fp4_bytes b;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        const uint v = q[i], e0 = v >> 1, e1 = v >> 2;
        const uint rest = (v & 0xeeeeeeeeu) | (v & (e0 | e1) & 0x11111111u);
        const uint below = (~e1 & (e0 | v) & 0x11111111u) * 7;
        b.low[i] = (rest << 3 & 0x60606060u) | (rest & 0x03030303u) |
                   (below << 2 & 0x1c1c1c1cu);
        b.high[i] = (rest >> 1 & 0x60606060u) | (rest >> 4 & 0x03030303u) |
                    (below >> 2 & 0x1c1c1c1cu);
    }
    return b;
}

#define TOP_BYTES(q, at) (MOVED(q, 9 - (at)) & 0xfe00fe00u)

static inline float
mxfp4_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint byte = at % 2 * 2 + 17 * span, shift = byte % 4 * 8;
    uint w[5], q[4];
    load_words(data, at / 2 + byte / 4, 5, w);
    shift_words(w, 4, shift + 8, q);
    const struct fp4_bytes v = fp4_bytes(q);
    b[0] = STEP_OF(TOP_BYTES, v.low);
    b[1] = STEP_OF(TOP_BYTES, v.high);
    return 2.0f * mxfp4_factor(w[0] >> shift & 255); /* that is for doubled numbers */
}

NO_SUMS(mxfp4)
#endif

#include "block_k_steps.h"

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
make_sums(const uint format, __global const uchar *data, uint at, uint blocks,
          const uint i, int8 *b)
{
#define SUMS_FORMAT(format) PASTE(format, _sums)(data, at, blocks, i, b)
    return BY_FORMAT(format, SUMS_FORMAT);
}
