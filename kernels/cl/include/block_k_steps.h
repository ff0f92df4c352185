/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes super-blocks of 256 columns to halves (block_steps.h).
 */

/* Returns the scales, or the minimums, of sub-blocks 2 i and 2 i + 1 of Q4_K and Q5_K (k_scales.h).
 * `first` has those of sub-blocks 0 to 3 and the two high bits of the others; `rest` the four low
 * bits of sub-blocks 4 to 7. */
static inline uint2
k_pair(uint first, uint rest, uint i)
{
    const uint four = i < 2 ? first & 0x3f3f3f3fu
                            : (rest & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u);
    const uint two = four >> i % 2 * 16;
    return (uint2)(two & 63, two >> 8 & 63);
}

/* Returns all scales, or all minimums, as coefficients of sums. */
static inline int8
k_coefficients(uint first, uint rest)
{
    float v[8];
#pragma unroll
    for (uint i = 0; i < 4; i++)
        vstore2(convert_float2(k_pair(first, rest, i)), i, v);
    return sum_coefficients(v);
}

/* Sets b to the coefficients that subtract the minimums of a block (k_scales.h); returns their
 * factor. */
static inline float
k_sums(uint minimums, uint rest, float factor, int8 *b)
{
    b[0] = k_coefficients(minimums, rest >> 4);
    return factor * (-1.0f / SUM_SCALE);
}

#ifdef FORMAT_q4_k
#define STEP_PLACE_q4_k 4
#define SPAN_K_q4_k     64
#define SUMS_q4_k       1
#define STEP_q4_k(span, s) (4 * (span) + (s))

/* Scale q is at most 63 * 15. */
static inline float
q4_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint head[4], q[8];
    load_words(data, at, 4, head);
    load_words(data, at + 4 + 8 * span, 8, q);
    const float2 scale = convert_float2(k_pair(head[1], head[3], span));
    b[0] = scaled_step(STEP_OF(LOW_AS_HALVES, q), scale.x, 1024.0f);
    b[1] = scaled_step(STEP_OF(LOW_AS_HALVES, q + 4), scale.x, 1024.0f);
    b[2] = scaled_step(STEP_OF(HIGH_AS_HALVES, q), scale.y, 64.0f);
    b[3] = scaled_step(STEP_OF(HIGH_AS_HALVES, q + 4), scale.y, 64.0f);
    return half_of(head[0], 0);
}

static inline float
q4_k_sums(__global const uchar *data, uint at, uint blocks, int8 *b)
{
    uint head[4];
    load_words(data, at, 4, head);
    return k_sums(head[2], head[3], half_of(head[0], 1), b);
}
#endif

#ifdef FORMAT_q5_k
#define STEP_PLACE_q5_k 4
#define SUMS_q5_k       1
/* A part is 16 bytes: 16 columns in low nibbles and 16 in high ones. A span has two parts, or one
 * in kernels that need the registers (SHORT_SPANS). */
#if SHORT_SPANS
#define SPAN_K_q5_k     32
#define STEP_q5_k(span, s) ((span) / 2 * 4 + (span) % 2 + 2 * (s))
#else
#define SPAN_K_q5_k     64
#define STEP_q5_k(span, s) (4 * (span) + (s))
#endif

/* Scale q is at most 63 * 31. */
static inline float
q5_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint parts = SPAN_K_q5_k / 32, i = span * parts / 2;
    uint head[4];
    load_words(data, at, 4, head);
    const float2 scale = convert_float2(k_pair(head[1], head[3], i));
#pragma unroll
    for (uint part = 0; part < parts; part++) {
        const uint word = (span * parts + part) % 2 * 4;
        uint high[4], q[4], low[8], up[8];
        load_words(data, at + 4 + word, 4, high);
        load_words(data, at + 12 + 8 * i + word, 4, q);
#pragma unroll
        for (int c = 0; c < 8; c++) {
            /* the fifth bits of low and high nibbles are bits 2 i and 2 i + 1 of the bytes of qh */
            const uint odd = c % 2 * 8, left = 4 - odd - 2 * i;
            low[c] = LOW_AS_HALVES(q[c / 2], (int)odd) |
                     (rotate(high[c / 2], left) & 0x00100010u);
            up[c] = HIGH_AS_HALVES(q[c / 2], (int)odd) |
                    (rotate(high[c / 2], left + 3) & 0x01000100u);
        }
        b[part] = scaled_step(as_int8(vload8(0, low)), scale.x, 1024.0f);
        b[parts + part] = scaled_step(as_int8(vload8(0, up)), scale.y, 64.0f);
    }
    return half_of(head[0], 0);
}

static inline float
q5_k_sums(__global const uchar *data, uint at, uint blocks, int8 *b)
{
    uint head[4];
    load_words(data, at, 4, head);
    return k_sums(head[2], head[3], half_of(head[0], 1), b);
}
#endif

/* ---- columns in planes of bits ------------------------------------------------------------- *
 *
 * Column 32 j + l of half a super-block is bits of byte l that depend on j. A span is 16 bytes,
 * that is 16 columns of each j; step s is those of j = s. */
#define PLANE_STEP(span, s) ((span) / 2 * 8 + (span) % 2 + 2 * (s))

/* The two bits at bit 2 s of the bytes stay in place, below an exponent for that place: halves
 * PLANE_BASE + q. */
#define PLANE_MASK(s) (0x00030003u << 2 * (s))
#define PLANE_ONE(s)  (0x64006400u - (s) * 0x08000800u)
#define PLANE_BASE(s) (float)(1024 >> 2 * (s))

/* Returns the scale byte of step s of a span, from two words of scale bytes; each sub-block of 16
 * columns has one. */
static inline uint
plane_byte(const uint w[2], uint span, const uint s)
{
    return w[s / 2] >> (s % 2 * 16 + span % 2 * 8) & 255;
}

#ifdef FORMAT_q2_k
#define STEP_PLACE_q2_k 4
#define SPAN_K_q2_k     64
#define SUMS_q2_k       2
#define STEP_q2_k(span, s) PLANE_STEP(span, s)

static inline float
q2_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    uint scale[2], two[4], d;
    load_words(data, at + span / 2 * 2, 2, scale);
    load_words(data, at + 4 + span * 4, 4, two);
    load_words(data, at + 20, 1, &d);
#pragma unroll
    for (uint s = 0; s < 4; s++) {
#define PLANE_AS_HALVES(q, at) ((MOVED(q, -(at)) & PLANE_MASK(s)) | PLANE_ONE(s))
        b[s] =
            scaled_step(STEP_OF(PLANE_AS_HALVES, two),
                        (float)(plane_byte(scale, span, s) & 15), PLANE_BASE(s));
    }
    return half_of(d, 0);
}

/* Coefficients for each 32 columns: the minimum of the first 16, and the difference of the second
 * minimum from it. */
static inline float
q2_k_sums(__global const uchar *data, uint at, uint blocks, int8 *b)
{
    uint w[4], d;
    float first[8], more[8];
    load_words(data, at, 4, w);
    load_words(data, at + 20, 1, &d);
#pragma unroll
    for (uint j = 0; j < 8; j++) {
        const uint two = w[j / 2] >> (j % 2 * 16 + 4);
        first[j] = (float)(two & 15);
        more[j] = (float)(two >> 8 & 15) - first[j];
    }
    b[0] = sum_coefficients(first);
    b[1] = sum_coefficients(more);
    return half_of(d, 1) * (-1.0f / SUM_SCALE);
}
#endif

#ifdef FORMAT_q3_k
#define STEP_PLACE_q3_k 2
#define SPAN_K_q3_k     64
#define STEP_q3_k(span, s) PLANE_STEP(span, s)

static inline float
q3_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint shift = at % 2 * 16, word = at / 2, half_block = span / 2;
    uint w[5], two[4], third[4], scales[3];
    load_words(data, word + span % 2 * 4, 5, w);
    shift_halves(w, 4, shift, third);
    load_words(data, word + 8 + span * 4, 5, w);
    shift_halves(w, 4, shift, two);
    load_words(data, word + 24, 4, w);
    shift_halves(w, 3, shift, scales);
    /* a scale has four low bits and two high ones, in neighbouring bytes for both words */
    const uint low[2] = {scales[0] >> 4 * half_block & 0x0f0f0f0fu,
                         scales[1] >> 4 * half_block & 0x0f0f0f0fu};
    const uint up = scales[2] >> 4 * half_block;
    const uint scale[2] = {low[0] | (up & 0x03030303u) << 4,
                           low[1] | (up >> 2 & 0x03030303u) << 4};
#pragma unroll
    for (uint i = 0; i < 4; i++)
        third[i] >>= 4 * half_block;
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        /* step 0 is moved up by two bits, because 1028 times a scale would not be exact in a
         * half */
        const uint plane = max(s, 1u);
        uint q[8];
#pragma unroll
        for (int c = 0; c < 8; c++) {
            const int odd = c % 2 * 8, to = 2 * (int)plane;
            q[c] = (MOVED(two[c / 2], to - 2 * (int)s - odd) & PLANE_MASK(plane)) |
                   PLANE_ONE(plane) |
                   (MOVED(third[c / 2], to + 2 - (int)s - odd) & (0x00040004u << to));
        }
        b[s] = scaled_step(as_int8(vload8(0, q)),
                           (float)plane_byte(scale, span, s) - 32.0f,
                           PLANE_BASE(plane) + 4.0f);
    }
    return half_bits(((__global const ushort *)data)[at + 54]);
}

NO_SUMS(q3_k)
#endif

#ifdef FORMAT_q6_k
#define STEP_PLACE_q6_k 2
#define SPAN_K_q6_k     64
#define STEP_q6_k(span, s) PLANE_STEP(span, s)

/* Scale times q - 32: above 2048 it is rounded to the nearest half. */
static inline float
q6_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint i = span % 2, shift = at % 2 * 16, word = at / 2;
    uint w[5], low[8], high[4], scales[2];
    load_words(data, word + span / 2 * 16 + i * 4, 5, w);
    shift_halves(w, 4, shift, low);
    load_words(data, word + span / 2 * 16 + 8 + i * 4, 5, w);
    shift_halves(w, 4, shift, low + 4);
    load_words(data, word + 32 + span * 4, 5, w);
    shift_halves(w, 4, shift, high);
    load_words(data, word + 48 + span / 2 * 2, 3, w);
    shift_halves(w, 2, shift, scales);
#pragma unroll
    for (int s = 0; s < 4; s++) {
        uint q[8];
#pragma unroll
        for (int c = 0; c < 8; c++) {
            const int odd = c % 2 * 8;
            q[c] = (MOVED(low[s % 2 * 4 + c / 2], 4 - s / 2 * 4 - odd) & 0x00f000f0u) |
                   (MOVED(high[c / 2], 8 - 2 * s - odd) & 0x03000300u) | 0x54005400u;
        }
        b[s] = scaled_step(as_int8(vload8(0, q)),
                           (float)as_char((uchar)plane_byte(scales, span, s)),
                           64.0f + 32.0f);
    }
    return half_bits(((__global const ushort *)data)[at + 104]);
}

NO_SUMS(q6_k)
#endif
