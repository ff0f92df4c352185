/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 256 columns whose numbers have their bits in two places (lane_blocks.h): numbers of 3
 * bits become nibbles or bytes, numbers of 5 and 6 bits become bytes. Signed numbers are in the
 * topmost bits of their nibble or byte, so that products are too large by a power of two.
 */

/* Returns byte i of a word of signed bytes as a float, times SIGNED_TIMES. */
#if SG == 16
#define SIGNED_TIMES 256
#else
#define SIGNED_TIMES 1
#endif
static inline float
signed_byte_of(uint word, const uint i)
{
#if SG == 16
    return (float)as_short2((i % 2 ? word : word << 8) & 0xff00ff00u)[i / 2];
#else
    return (float)as_char4(word)[i];
#endif
}

/* Loads the x of half a block in four steps of 32 columns, in the order of bytes. */
static inline void
load_byte_steps(__global const STORAGE(SRC) * x, struct activations *a)
{
    float v[X_VALUES];
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_bytes(x + 32 * s, 0, v + s * LANE_SLOTS);
    make_integers(v, a);
}

/* The x of a whole block. In each 32 columns, the first 16 and the last 16 have their own sums,
 * because they have their own scales. */
struct block_x {
    struct activations a[2];
    apart_rows bytes[8];
};

static inline void
load_block(__global const STORAGE(SRC) * x, struct block_x *b)
{
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        load_byte_steps(x + h * X_COLUMNS, &b->a[h]);
#pragma unroll
        for (uint s = 0; s < 4; s++)
            b->bytes[4 * h + s] = ROW_HALVES(byte_rows(b->a[h].q + s * LANE_SLOTS));
    }
}

/* Returns two dot products of a row of weights (`bytes`) with x: over columns 32 s … 32 s + 15 and
 * over the 16 columns after these. They are not yet multiplied by the scale of x. */
static inline float2
block_products(const struct block_x *b, const uint s, uint8 bytes)
{
    const int4 dot = BYTES_APART(i8, b->bytes[s], bytes, (int4)0);
    return (float2)((float)both_bytes(dot.xy), (float)both_bytes(dot.zw));
}

#ifdef FORMAT_q3_k
#define LANE_K_q3_k 256
#define PLACE_q3_k  2

/* Returns the 6-bit scales minus 32 as signed bytes, 4 times too large. */
static inline uint4
q3_k_scales(const uint *word)
{
    const uint4 low = (uint4)(word[0] << 2, word[1] << 2, word[0] >> 2, word[1] >> 2);
    const uint4 high = (uint4)(word[2] << 6, word[2] << 4, word[2] << 2, word[2]);
    return ((low & 0x3c3c3c3cu) | (high & 0xc0c0c0c0u)) ^ 0x80808080u;
}

#if DP4A
#define q3_k_x     block_x
#define load_q3_k  load_block
#define Q3_K_TIMES (SIGNED_TIMES * 4 * 32)

/* Returns the bytes 32 (q - 4) of columns 32 j … of half a block: two bits of `two` below the third
 * bit, from `bits`. */
static inline uint8
q3_k_bytes(uint8 two, uint8 bits, const uint half_block, const uint j)
{
    const uint8 low = (j == 3 ? two >> 1u : two << (5 - 2 * j)) & 0x60606060u;
    return low | (~bits << (7 - 4 * half_block - j) & 0x80808080u);
}

static inline float
q3_k_half(const struct block_x *b, const uint s, const uint *two, const uint *bits,
          uint4 scales)
{
    float total = 0.0f;
#pragma unroll
    for (uint j = 0; j < 4; j++) {
        const float2 dot = block_products(
            b, 4 * s + j, q3_k_bytes(vload8(0, two), vload8(0, bits), s, j));
        total += signed_byte_of(scales[2 * s + j / 2], j % 2 * 2) * dot.x +
                 signed_byte_of(scales[2 * s + j / 2], j % 2 * 2 + 1) * dot.y;
    }
    return total * b->a[s].scale;
}
#else
struct q3_k_x {
    struct half_x h[2];
};
#define Q3_K_TIMES (SIGNED_TIMES * 4 * 2)

static inline void
load_q3_k(__global const STORAGE(SRC) * x, struct q3_k_x *b)
{
    load_half(x, 64, &b->h[0]);
    load_half(x + X_COLUMNS, 64, &b->h[1]);
}

/* Returns the third bits of runs 0 … 3 (32 columns each) of half a block: bits 0 and 1 of each byte
 * are those of runs 0 and 1, bits 4 and 5 those of runs 2 and 3. */
static inline uint4
q3_k_third(uint4 bits, const uint half_block)
{
    return half_block ? bitselect(bits >> 4u, bits >> 2u, (uint4)0x30303030u)
                      : bitselect(bits, bits << 2u, (uint4)0x30303030u);
}

/* Returns the nibbles 2 (q - 4) of runs p and p + 2; `two` has the low bits of q. */
static inline uint4
q3_k_nibbles(uint4 two, uint4 third, const uint p)
{
    const uint4 low = p ? two >> 1u : two << 1u;
    return (bitselect(low, third << (3 - p), (uint4)0x88888888u) & 0xeeeeeeeeu) ^
           0x88888888u;
}

static inline float
q3_k_half(const struct q3_k_x *x, const uint s, const uint *two, const uint *bits,
          uint4 scales)
{
    const struct half_x *h = &x->h[s];
    float total = 0.0f;
#pragma unroll
    for (uint b = 0; b < 4; b++) {
        const uint4 q =
            q3_k_nibbles(vload4(b % 2, two), q3_k_third(vload4(b % 2, bits), s), b / 2);
        const int4 dot = APART(i4, NIBBLES_APART(i4, h->bytes[b], q, (int4)0));
        total += signed_byte_of(scales[2 * s], b) * (float)both_bytes(dot.xy) +
                 signed_byte_of(scales[2 * s + 1], b) * (float)both_bytes(dot.zw);
    }
    return total * h->scale;
}
#endif

static inline void
q3_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct q3_k_x b;
    load_q3_k(x + k, &b);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        const uint at = rows->word[i] + (rows->words + k / 256 * (BYTES_q3_k / 2));
        uint third_bits[8], word[3];
        load_unaligned(rows->w->data, at, 8, 9, third_bits);
        load_unaligned(rows->w->data, at + 48, 3, 4, word);
        const uint4 scales = q3_k_scales(word);
        float total = 0.0f;
#pragma unroll
        for (uint s = 0; s < 2; s++) { /* by halves: a block takes many registers */
            uint two[8];
            load_unaligned(rows->w->data, at + 16 + 16 * s, 8, 9, two);
            total += q3_k_half(&b, s, two, third_bits, scales);
        }
        sum[i] += total * (factor / Q3_K_TIMES) *
                  half_bits(((__global const ushort *)rows->w->data)[at + 54]);
    }
}
#endif

#ifdef FORMAT_q6_k
#define LANE_K_q6_k 256
#define PLACE_q6_k  2

/* Returns the bytes 4 (q - 32) of columns 32 j … of half a block: two bits of `high` above four of
 * `low`. */
static inline uint8
q6_k_bytes(uint8 low, uint8 high, const uint j)
{
    const uint8 four = j / 2 ? low >> 2u : low << 2u;
    const uint8 two = j == 3 ? high : high << (6 - 2 * j);
    return ((two & 0xc0c0c0c0u) | (four & 0x3c3c3c3cu)) ^ 0x80808080u;
}

static inline void
q6_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct block_x b;
    load_block(x + k, &b);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        const uint at = rows->word[i] + (rows->words + k / 256 * (BYTES_q6_k / 2));
        float total = 0.0f;
#pragma unroll
        for (uint h = 0; h < 2; h++) { /* by halves: a block takes many registers */
            uint low[16], high[8], word[2];
            load_unaligned(rows->w->data, at + 32 * h, 16, 17, low);
            load_unaligned(rows->w->data, at + 64 + 16 * h, 8, 9, high);
            load_unaligned(rows->w->data, at + 96 + 4 * h, 2, 3, word);
            float part = 0.0f;
#pragma unroll
            for (uint j = 0; j < 4; j++) {
                const float2 dot = block_products(
                    &b, 4 * h + j, q6_k_bytes(vload8(j % 2, low), vload8(0, high), j));
                part += signed_byte_of(word[j / 2], j % 2 * 2) * dot.x +
                        signed_byte_of(word[j / 2], j % 2 * 2 + 1) * dot.y;
            }
            total += part * b.a[h].scale;
        }
        sum[i] += total * (factor * (0.25f / SIGNED_TIMES)) *
                  half_bits(((__global const ushort *)rows->w->data)[at + 104]);
    }
}
#endif

#ifdef FORMAT_q5_k
#define LANE_K_q5_k 256
#define PLACE_q5_k  4

/* The factor by which q5_k_bytes makes run j of 32 columns too large. */
#define Q5_K_TIMES(j) ((j) % 2 ? (j) % 4 == 1 ? 2 : 8 : 1)

/* Returns the bytes of columns 32 j …, times Q5_K_TIMES(j): nibbles with bit j of `high` above
 * them. `raised` is high << 4: it has the bit in place for most runs, if odd runs are made
 * larger. */
static inline uint8
q5_k_bytes(uint8 low, uint8 high, uint8 raised, const uint j)
{
    const uint times = Q5_K_TIMES(j);
    const uint8 four = times == 8 ? low >> 1u : times == 2 ? low >> 3u : low;
    const uint8 one = j < 4 ? raised : high;
    return (four & 0x0f0f0f0fu * times) |
           ((j % 4 == 2 ? one >> 2u : one) & 0x10101010u * times);
}

static inline void
q5_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct activations a[2];
    a_rows2 bytes[8];
    float x_sum[8];
#pragma unroll
    for (uint h = 0; h < 2; h++) {
        load_byte_steps(x + k + h * X_COLUMNS, &a[h]);
#pragma unroll
        for (uint s = 0; s < 4; s++) {
            bytes[4 * h + s] = byte_rows(a[h].q + s * LANE_SLOTS);
            x_sum[4 * h + s] = sum_of_x(&a[h], s * LANE_SLOTS, LANE_SLOTS, BOTH_PARTS);
        }
    }
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at =
            (__global const uint *)rows->w->data +
            (rows->word[i] + (rows->words + k / 256 * (BYTES_q5_k / 4)));
        const uint4 head = vload4(0, at);
        const uint8 high = (uint8)(vload4(1, at), vload4(2, at)), raised = high << 4u;
        const struct k_bytes f = k_bytes_of(head);
        float total = 0.0f, less = 0.0f;
#pragma unroll
        for (uint c = 0; c < 4; c++) { /* 64 columns in 32 bytes */
            const uint8 low = (uint8)(vload4(3 + 2 * c, at), vload4(4 + 2 * c, at));
#pragma unroll
            for (uint j = 2 * c; j < 2 * c + 2; j++) {
                const int2 dot =
                    mad_u8(bytes[j], q5_k_bytes(low, high, raised, j), (int2)0);
                total += byte_of(f.scales[j / 4], j % 4) *
                         ((float)both_bytes(dot) * (a[j / 4].scale / Q5_K_TIMES(j)));
                less += byte_of(f.minimums[j / 4], j % 4) * x_sum[j];
            }
        }
        const float2 d = halves(head.x);
        sum[i] += (d.x * total - d.y * less) * factor;
    }
}
#endif
