/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 32 columns, processed in pairs, because a pair is whole words (lane_blocks.h):
 * PAIRS_ADD, and the formats of integers of 4, 5 and 8 bits. Formats with tables are in
 * lane_tables.h.
 */

/* The activations of two blocks: rows of bytes in the order of the weights, rows in the order of
 * fifth bits, and the sums of x. */
struct pair_x {
    a_rows2 rows[2], bits[2];
    float sum[2], scale;
};

/* Flags for what a format needs of struct pair_x: PAIR_BYTES: rows in the order of load_bytes, else
 * of load_pairs; PAIR_SUMS; PAIR_BITS. If the first block's weights begin in the middle of a word,
 * `behind` is 2 (load_bytes, load_pairs). */
enum { PAIR_BYTES = 1, PAIR_SUMS = 2, PAIR_BITS = 4 };

/* Loads the activations of two pairs of blocks; if the row ends after one pair (!both), that pair
 * is loaded twice. */
static inline void
load_two_pairs(__global const STORAGE(SRC) * x, const bool both, const uint apart,
               const uint behind, const uint wants, struct pair_x h[2])
{
    float v[X_VALUES], of_bits[X_VALUES];
    uint bits[X_VALUES];
    struct activations a;
#pragma unroll
    for (uint p = 0; p < 2; p++) {
        __global const STORAGE(SRC) *at = x + (both ? p * 64 : 0);
        const uint to = p * 2 * LANE_SLOTS;
        if (wants & PAIR_BYTES) {
            load_bytes(at, behind, v + to);
            load_bytes(at + 32, 0, v + to + LANE_SLOTS);
        } else if (behind == 0) {
            load_two_steps(at, apart, v + to);
        } else {
            load_pairs(at, apart, behind, v + to);
            load_pairs(at + 32, apart, 0, v + to + LANE_SLOTS);
        }
        if (wants & PAIR_BITS) {
            load_bits(at, of_bits + to);
            load_bits(at + 32, of_bits + to + LANE_SLOTS);
        }
    }
    make_integers(v, &a);
    if (wants & PAIR_BITS)
        same_integers(of_bits, &a, bits);
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        struct pair_x *p = &h[s / 2];
        p->rows[s % 2] = byte_rows(a.q + s * LANE_SLOTS);
        p->scale = a.scale;
        if (wants & PAIR_BITS)
            p->bits[s % 2] = byte_rows(bits + s * LANE_SLOTS);
        p->sum[s % 2] = wants & PAIR_SUMS
                            ? sum_of_x(&a, s * LANE_SLOTS, LANE_SLOTS, BOTH_PARTS)
                            : 0.0f;
    }
}

/* Defines <name>_add by <name>_pair(h, data, at), which returns the products of two blocks. */
#define PAIRS_ADD(name, apart, behind, wants)                                            \
    static inline void name##_add(const struct lane_rows *rows,                          \
                                  __global const STORAGE(SRC) * x, uint k, float factor, \
                                  float sum[ROW_BLOCKS])                                 \
    {                                                                                    \
        const uint pairs = min((rows->w->k_count - k) / 64, 2u);                         \
        struct pair_x h[2];                                                              \
        load_two_pairs(x + k, pairs == 2, apart, behind, wants, h);                      \
        _Pragma("unroll") for (uint p = 0; p < 2; p++)                                   \
        {                                                                                \
            const float scale = p < pairs ? factor : 0.0f;                               \
            const uint at =                                                              \
                rows->words + (k / 64 + min(p, pairs - 1)) *                             \
                                  (64 / COLUMNS_##name * BYTES_##name / PLACE_##name);   \
            _Pragma("unroll") for (uint i = 0; i < ROW_BLOCKS; i++) sum[i] +=            \
                scale * name##_pair(&h[p], rows->w->data, rows->word[i] + at);           \
        }                                                                                \
    }

#ifdef FORMAT_q4_0
#define LANE_K_q4_0 128
#define PLACE_q4_0  4

static inline float
q4_0_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    const uint4 w0 = vload4(0, words), w4 = vload4(1, words), w5 = vload4(0, words + 5);
    const a_rows2 x0 = in_first_words(h->rows[0], 4), x1 = h->rows[0] ^ x0;
    const nibble_sum first =
        FIRST_NIBBLES(u4, x1, w4, NIBBLES(u4, x0, w0, (nibble_sum)0));
    const nibble_sum second = NIBBLES(u4, h->rows[1], w5, (nibble_sum)0);
    return halves(w0.x).x *
               ((float)both_bytes(TOGETHER(u4, first)) * h->scale - 8.0f * h->sum[0]) +
           halves(w4.x).y *
               ((float)both_bytes(TOGETHER(u4, second)) * h->scale - 8.0f * h->sum[1]);
}
PAIRS_ADD(q4_0, 16, 2, PAIR_SUMS)
#endif

#ifdef FORMAT_q4_1
#define LANE_K_q4_1 128
#define PLACE_q4_1  4

static inline float
q4_1_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    float total = 0.0f;
#pragma unroll
    for (uint b = 0; b < 2; b++) {
        const float2 d = halves(words[5 * b]);
        const nibble_sum dot =
            NIBBLES(u4, h->rows[b], vload4(0, words + 5 * b + 1), (nibble_sum)0);
        total +=
            d.x * ((float)both_bytes(TOGETHER(u4, dot)) * h->scale) + d.y * h->sum[b];
    }
    return total;
}
PAIRS_ADD(q4_1, 16, 0, PAIR_SUMS)
#endif

/* Returns the products of block b: those of its nibbles, plus those of `bits`, where a set bit is
 * worth `fifth`. */
static inline float
five_bits(const struct pair_x *h, const uint b, nibble_sum nibbles, uint bits,
          const int fifth)
{
    const int2 ones = mad_bits(h->bits[b], bits, (int2)0);
    return (float)both_bytes(TOGETHER(u4, nibbles) + ones * fifth) * h->scale;
}

#ifdef FORMAT_q5_0
#define LANE_K_q5_0 128
#define PLACE_q5_0  4

/* q - 16 is the nibble, minus 16 if the fifth bit is not set. */
static inline float
q5_0_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    const uint4 w0 = vload4(0, words), w4 = vload4(1, words), w7 = vload4(0, words + 7);
    const a_rows2 x0 = in_first_words(h->rows[0], 4), x1 = h->rows[0] ^ x0;
    const nibble_sum first =
        FIRST_NIBBLES(u4, x1, (uint4)(w4.yzw, 0),
                      NIBBLES(u4, x0, (uint4)(w0.yzw, w4.x), (nibble_sum)0));
    const nibble_sum second = NIBBLES(u4, h->rows[1], w7, (nibble_sum)0);
    return halves(w0.x).x * five_bits(h, 0, first, ~(w0.x >> 16 | w0.y << 16), -16) +
           halves(w4.y).y * five_bits(h, 1, second, ~w4.z, -16);
}
PAIRS_ADD(q5_0, 16, 2, PAIR_BITS)
#endif

#ifdef FORMAT_q5_1
#define LANE_K_q5_1 128
#define PLACE_q5_1  4

static inline float
q5_1_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    float total = 0.0f;
#pragma unroll
    for (uint b = 0; b < 2; b++) {
        const float2 d = halves(words[6 * b]);
        const nibble_sum dot =
            NIBBLES(u4, h->rows[b], vload4(0, words + 6 * b + 2), (nibble_sum)0);
        total += d.x * five_bits(h, b, dot, words[6 * b + 1], 16) + d.y * h->sum[b];
    }
    return total;
}
PAIRS_ADD(q5_1, 16, 0, PAIR_SUMS | PAIR_BITS)
#endif

#ifdef FORMAT_q8_0
#define LANE_K_q8_0 128
#define PLACE_q8_0  4

static inline float
q8_0_pair(const struct pair_x *h, __global const uchar *data, uint at)
{
    __global const uint *words = (__global const uint *)data + at;
    const uint8 w0 = (uint8)(vload4(0, words), vload4(1, words));
    const uint8 w8 = (uint8)(vload4(2, words), vload4(3, words));
    const uint8 w9 = (uint8)(w8.s1234, w8.s567, words[16]);
    const a_rows2 x0 = in_first_words(h->rows[0], 2), x1 = h->rows[0] ^ x0;
    const int2 first = FIRST_BYTES(i8, x1, w8, mad_i8(x0, w0, (int2)0));
    const int2 second = mad_i8(h->rows[1], w9, (int2)0);
    return (halves(w0.s0).x * (float)both_bytes(first) +
            halves(w8.s0).y * (float)both_bytes(second)) *
           h->scale;
}
PAIRS_ADD(q8_0, 16, 2, PAIR_BYTES)
#endif
