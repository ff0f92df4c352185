/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks as halves, a row a lane, in the order of steps.h. A format says
 *
 *     STEP_PLACE_<name>     bytes that a row begins at a multiple of: the unit of places
 *     SPAN_K_<name>         columns that have a factor of their own: a span
 *     STEP_<name>(span, s)  where its step s is in a super-block
 *     SUMS_<name>           products with the sums of x, of a super-block
 *     float <name>_span(data, at, span, b)        the steps of a span of the super-block at place
 *                                                 `at`; their factor
 *     float <name>_sums(data, at, blocks, i, b)   coefficients of the sums of so many blocks of 32
 *                                                 columns; the factor of product i
 *
 * Spans are whole words: the host refuses others (primitives/matrix_engine.c).
 *
 * Numbers become halves by bits: with the exponent field of 2^n above them they are themselves and
 * 2^n, the offset, as long as they are below 2^n and the half's ten bits suffice.
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

/* Bits of two numbers, moved left by `left`, behind others' exponents. */
#define MOVED(v, left) ((left) < 0 ? (v) >> (uint)(-(left)) : (v) << (uint)(left))

/* n words that begin `bits` bits behind the first of n + 1: 1 to 32. */
static inline void
shift_words(const uint *w, const uint n, uint bits, uint *out)
{
#pragma unroll
    for (uint i = 0; i < n; i++)
        out[i] = w[i] >> 1 >> (bits - 1) | w[i + 1] << (32 - bits);
}

/* The same for 0 or 16 bits. By a product: compilers make no choice of it, which would be one more
 * operation. */
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

/* A step, 16 numbers in four words. PAIR(q, 0) is numbers 0 and 2 of a word, PAIR(q, 8) 1 and 3. */
#define STEP_OF(PAIR, q)                                                                 \
    as_int8((uint8)(PAIR((q)[0], 0), PAIR((q)[0], 8), PAIR((q)[1], 0), PAIR((q)[1], 8),  \
                    PAIR((q)[2], 0), PAIR((q)[2], 8), PAIR((q)[3], 0), PAIR((q)[3], 8)))

/* Coefficients of the sums of 32 columns, as halves. Those of the high parts are SUM_PARTS times as
 * much. */
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

/* Formats whose numbers need no offset. */
#define NO_SUMS(name)                                                                    \
    static inline float name##_sums(__global const uchar *data, uint at, uint blocks,    \
                                    const uint i, int8 *b)                               \
    {                                                                                    \
        return 0.0f;                                                                     \
    }

/* ---- blocks of 32 columns: a half and bytes; two are whole words --------------------------- */

/* Where a block's half is: half 0 of that word, half 1 if the block is odd. */
static inline uint
paired_word(const uint words, uint block)
{
    return block / 2 * words + block % 2 * (words / 2);
}

/* The n words behind the half of a block, which is returned. */
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

/* The halves of a super-block. */
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

#ifdef FORMAT_q4_0
#define STEP_PLACE_q4_0 4
#define SPAN_K_q4_0     32
#define SUMS_q4_0       1
#define STEP_q4_0(span, s) (2 * (span) + (s))

/* 16 + q. */
#define LOW_NIBBLES(q, at)  ((MOVED(q, 6 - (at)) & 0x03c003c0u) | 0x4c004c00u)
#define HIGH_NIBBLES(q, at) LOW_NIBBLES(q, (at) + 4)

static inline float
q4_0_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint q[4];
    const float d = load_paired(data, at, span, 4, q);
    b[0] = STEP_OF(LOW_NIBBLES, q);
    b[1] = STEP_OF(HIGH_NIBBLES, q);
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

/* 256 + 128 + q: the topmost bit of q flipped. */
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

#ifdef FORMAT_mxfp4
#define STEP_PLACE_mxfp4 2
#define SPAN_K_mxfp4     32
#define SUMS_mxfp4       0
#define STEP_mxfp4(span, s) (2 * (span) + (s))

/* The seven topmost bits of the halves of floats of 4 bits (sign, e1 e0, m), a byte each: sign, e1,
 * three of ~e1 (e0 | m), e0, m (e0 | e1): no number is less than normal. */
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
    return 2.0f * mxfp4_factor(w[0] >> shift & 255);
}

NO_SUMS(mxfp4)
#endif

/* ---- super-blocks ------------------------------------------------------------------------ */

/* Sub-blocks 2 i and 2 i + 1 of the scales or the minimums of Q4_K and Q5_K, of which `first` has
 * the first four and two bits of the others (k_scales.h); `rest` has their other four. */
static inline uint2
k_pair(uint first, uint rest, uint i)
{
    const uint four = i < 2 ? first & 0x3f3f3f3fu
                            : (rest & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u);
    const uint two = four >> i % 2 * 16;
    return (uint2)(two & 63, two >> 8 & 63);
}

/* All scales, or all minimums, as coefficients of sums. */
static inline int8
k_coefficients(uint first, uint rest)
{
    float v[8];
#pragma unroll
    for (uint i = 0; i < 4; i++)
        vstore2(convert_float2(k_pair(first, rest, i)), i, v);
    return sum_coefficients(v);
}

#ifdef FORMAT_q4_k
#define STEP_PLACE_q4_k 4
#define SPAN_K_q4_k     64
#define SUMS_q4_k       2
#define STEP_q4_k(span, s) (4 * (span) + (s))

static inline float
q4_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint head[4], q[8];
    load_words(data, at, 4, head);
    load_words(data, at + 4 + 8 * span, 8, q);
    const uint2 scale = k_pair(head[1], head[3], span);
/* 1024 + scale q, at most 63 * 15. */
#define LOW_SCALED(q, at)  ((MOVED(q, -(at)) & 0x000f000fu) * scale.x | 0x64006400u)
#define HIGH_SCALED(q, at) ((MOVED(q, -4 - (at)) & 0x000f000fu) * scale.y | 0x64006400u)
    b[0] = STEP_OF(LOW_SCALED, q);
    b[1] = STEP_OF(LOW_SCALED, q + 4);
    b[2] = STEP_OF(HIGH_SCALED, q);
    b[3] = STEP_OF(HIGH_SCALED, q + 4);
    return half_of(head[0], 0);
}

static inline float
q4_k_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    const float ones[8] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    uint head[4];
    load_words(data, at, 4, head);
    if (i == 0) {
        b[0] = sum_coefficients(ones);
        return half_of(head[0], 0) * (-1024.0f / SUM_SCALE);
    }
    b[0] = k_coefficients(head[2], head[3] >> 4);
    return half_of(head[0], 1) * (-1.0f / SUM_SCALE);
}
#endif

#ifdef FORMAT_q6_k
#define STEP_PLACE_q6_k 2
#define SPAN_K_q6_k     64
#define SUMS_q6_k       0
/* Spans are columns 32 i … and 32 (i + 2) … of a half: nibbles of the same bytes. */
#define STEP_q6_k(span, s) ((span) / 2 * 8 + (span) % 2 * 2 + (s) + (s) / 2 * 2)

/* scale (q - 32) of two halves 64 + q. Beyond 2048 it is rounded to the nearest half. */
static inline uint
q6_k_pair(uint pair, float scale)
{
#ifdef cl_khr_fp16
    const half s = convert_half(scale), less = s * -96.0h; /* exact */
    return as_uint(fma(as_half2(pair), (half2)s, (half2)less));
#else
    const float2 v = (halves(pair) - 96.0f) * scale;
    return two_halves(v.x, v.y);
#endif
}

static inline float
q6_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint i = span % 2, shift = at % 2 * 16, word = at / 2;
    uint w[9], low[8], high[8], scales[2];
    load_words(data, word + span * 8, 9, w);
    shift_halves(w, 8, shift, low);
    load_words(data, word + 32 + span / 2 * 8, 9, w);
    shift_halves(w, 8, shift, high);
    load_words(data, word + 48 + span / 2 * 2, 3, w);
    shift_halves(w, 2, shift, scales);
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        const char4 four = as_char4(scales[s / 2] >> i * 16);
        const float scale = (float)(s % 2 ? four.y : four.x);
        uint q[8];
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            const uint from = s % 2 * 4 + c / 2;
            const int left = 4 - c % 2 * 8 - s / 2 * 4;
            q[c] = q6_k_pair((MOVED(low[from], left) & 0x00f000f0u) |
                                 (rotate(high[from], 8 - c % 2 * 8 - s / 2 * 4 - 2 * i) &
                                  0x03000300u) |
                                 0x54005400u,
                             scale);
        }
        b[s] = as_int8(vload8(0, q));
    }
    return half_bits(((__global const ushort *)data)[at + 104]);
}

NO_SUMS(q6_k)
#endif

#ifdef FORMAT_q5_k
#define STEP_PLACE_q5_k 4
#define SPAN_K_q5_k     32
#define SUMS_q5_k       2
#define STEP_q5_k(span, s) (2 * (span) + (s))

static inline float
q5_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint head[4], high[8], q[8];
    load_words(data, at, 4, head);
    load_words(data, at + 4, 8, high);
    load_words(data, at + 12 + span / 2 * 8, 8, q);
    const uint2 scales = k_pair(head[1], head[3], span / 2);
/* 32 + q: four bits to bit 5, their fifth to bit 9. */
#define FIVE_BITS(i, at)                                                                 \
    ((rotate(q[i], 5 - (at) - span % 2 * 4) & 0x01e001e0u) |                             \
     (rotate(high[i], 9 - (at) - span) & 0x02000200u) | 0x50005000u)
#define FIVE_STEP(i)                                                                     \
    as_int8((uint8)(FIVE_BITS(i, 0), FIVE_BITS(i, 8), FIVE_BITS(i + 1, 0),               \
                    FIVE_BITS(i + 1, 8), FIVE_BITS(i + 2, 0), FIVE_BITS(i + 2, 8),       \
                    FIVE_BITS(i + 3, 0), FIVE_BITS(i + 3, 8)))
    b[0] = FIVE_STEP(0);
    b[1] = FIVE_STEP(4);
    return half_of(head[0], 0) * (float)(span % 2 ? scales.y : scales.x);
}

static inline float
q5_k_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    uint head[4];
    load_words(data, at, 4, head);
    b[0] = i ? k_coefficients(head[2], head[3] >> 4) : k_coefficients(head[1], head[3]);
    return half_of(head[0], i) * ((i ? -1.0f : -32.0f) / SUM_SCALE);
}
#endif

/* ---- any of them ------------------------------------------------------------------------- */

#define SPAN_K(format) PASTE(SPAN_K_, format)
#define SUMS(format)   PASTE(SUMS_, format)

/* Where step s of a span is in a super-block. */
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
