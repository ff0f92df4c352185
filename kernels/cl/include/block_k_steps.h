/* SPDX-License-Identifier: Apache-2.0
 *
 * Super-blocks of 256 columns as halves (block_steps.h).
 */

/* The scales, or the minimums, of sub-blocks 2 i and 2 i + 1 of Q4_K and Q5_K (k_scales.h): `first`
 * has those of the first four sub-blocks and two bits of the others', `rest` their other four. */
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
/* Halves 1024 + scale q; scale q is at most 63 * 15. */
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
    uint head[4];
    load_words(data, at, 4, head);
    if (i == 0) {
        b[0] = equal_coefficients();
        return half_of(head[0], 0) * (-1024.0f / SUM_SCALE);
    }
    b[0] = k_coefficients(head[2], head[3] >> 4);
    return half_of(head[0], 1) * (-1.0f / SUM_SCALE);
}
#endif

#ifdef FORMAT_q3_k
#define STEP_PLACE_q3_k 2
#define SPAN_K_q3_k     32
#define SUMS_q3_k       1
#define STEP_q3_k(span, s) (2 * (span) + (s))

static inline float
q3_k_span(__global const uchar *data, uint at, uint span, int8 *b)
{
    const uint shift = at % 2 * 16, word = at / 2, four = span / 2; /* which four scales */
    uint w[9], two[8], third[8], scales[3];
    load_words(data, word, 9, w);
    shift_halves(w, 8, shift, third);
    load_words(data, word + 8 + span / 4 * 8, 9, w);
    shift_halves(w, 8, shift, two);
    load_words(data, word + 24, 4, w);
    shift_halves(w, 3, shift, scales);
    const uint low = (four % 2 ? scales[1] : scales[0]) >> four / 2 * 4 & 0x0f0f0f0fu;
    const uint scale = (low | (scales[2] >> 2 * four & 0x03030303u) << 4) >> span % 2 * 16;
#pragma unroll
    for (uint s = 0; s < 2; s++) {
        uint q[8];
#pragma unroll
        for (uint c = 0; c < 8; c++) {
            const uint from = s * 4 + c / 2, odd = c % 2 * 8;
            const uint pair = (rotate(two[from], 0 - odd - span % 4 * 2) & 0x00030003u) |
                              (rotate(third[from], 2 - odd - span) & 0x00040004u);
            /* 1536 + scale (q - 4), the latter -124 to 128: where the lower number's is negative it
             * borrows 1 from the upper number, and the sum gives that back */
            q[c] = (pair - 0x00040004u) * ((scale >> 8 * s & 63) - 32) + 0x66006600u;
        }
        b[s] = as_int8(vload8(0, q));
    }
    return half_bits(((__global const ushort *)data)[at + 54]);
}

static inline float
q3_k_sums(__global const uchar *data, uint at, uint blocks, const uint i, int8 *b)
{
    b[0] = equal_coefficients();
    return half_bits(((__global const ushort *)data)[at + 54]) * (-1536.0f / SUM_SCALE);
}
#endif

#ifdef FORMAT_q6_k
#define STEP_PLACE_q6_k 2
#define SPAN_K_q6_k     64
#define SUMS_q6_k       0
/* A span is columns 32 i … and 32 (i + 2) … of half a super-block: nibbles of the same bytes. */
#define STEP_q6_k(span, s) ((span) / 2 * 8 + (span) % 2 * 2 + (s) + (s) / 2 * 2)

/* scale (q - 32) of two halves 64 + q. Above 2048 the results are rounded to the nearest half. */
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
/* Halves 32 + q: four bits of q go to bits 5 to 8, the fifth to bit 9. */
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
