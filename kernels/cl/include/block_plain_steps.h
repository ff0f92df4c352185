/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes blocks of 32 columns with plainly stored integers to halves (block_steps.h).
 */

/* ---- blocks of 32 columns: a half and bytes; a pair is whole words -------------------------- */

/* Returns the word with a block's scale, which is half 0 of the word, or half 1 for odd blocks; a
 * pair of blocks has `words` words. */
static inline uint
paired_word(const uint words, uint block)
{
    return block / 2 * words + block % 2 * (words / 2);
}

/* Loads the n words behind the scale of a block into q; returns the scale. */
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

/* Sets b to 32 weights q - offset of 5 bits: bits 0 to 3 are nibbles of `q`, as above, bit 4 is a
 * bit of `high`. */
static inline void
five_bit_steps(const uint q[4], uint high, float offset, int8 *b)
{
    /* moves bits k and k + 2 to k and k + 16, because columns k and k + 2 share a word */
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

/* Returns the minimums of a super-block's blocks, of `words` words each, as coefficients of
 * sums. */
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
