/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 256 columns (lane_blocks.h). Numbers of 4 and 2 bits are multiplied as the nibbles that
 * the file has; those of 3 bits are made nibbles, those of 5 and 6 bits bytes. Signed numbers take
 * the topmost bits of their nibble or byte, so that the products are 2 or 4 times too large.
 */

/* Byte i of a word as a float, in the way for which the compiler takes the fewest instructions. */
static inline float
byte_of(uint word, const uint i)
{
#if SG == 16
    return (float)as_ushort2(word >> (i % 2 * 8) & 0x00ff00ffu)[i / 2];
#else
    return (float)as_uchar4(word)[i];
#endif
}

/* Byte i of 16. */
static inline float
byte_of_16(uint4 bytes, const uint i)
{
    return byte_of(bytes[i / 4], i % 4);
}

/* The same of a signed byte, SIGNED_TIMES what it is. */
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

/* The scales and minimums of Q4_K and Q5_K (k_scales.h), a byte each: sub-blocks 0 … 3, 4 … 7. */
struct k_bytes {
    uint2 scales, minimums;
};

static inline struct k_bytes
k_bytes_of(uint4 head)
{
    return (struct k_bytes){
        (uint2)(head.y & 0x3f3f3f3fu,
                (head.w & 0x0f0f0f0fu) | (head.y >> 2 & 0x30303030u)),
        (uint2)(head.z & 0x3f3f3f3fu,
                (head.w >> 4 & 0x0f0f0f0fu) | (head.z >> 2 & 0x30303030u))};
}

/* The x of half a block in four steps: 16 columns of a run of 32 and 16 of the run 32 or 64 columns
 * behind it (`apart`). The sums are those of runs that are neighbours, for minimums. */
struct half_x {
    apart_rows bytes[4];
    float scale, sum[4];
};

static inline void
load_half(__global const STORAGE(SRC) * x, const uint apart, struct half_x *h)
{
    float v[X_VALUES];
    struct activations a;
#if IS_HALF(SRC) && SG == 16
    const ushort8 runs = intel_sub_group_block_read_us8((__global const ushort *)x);
#pragma unroll
    for (uint s = 0; s < 8; s++)
        v[apart == 32 ? s / 4 * 4 + s % 2 * 2 + s / 2 % 2 : s % 4 * 2 + s / 4] =
            half_bits(runs[s]);
#else
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_pairs(x + s / 2 * (96 - apart) + s % 2 * 16, apart, 0, v + s * LANE_SLOTS);
#endif
    make_integers(v, &a);
    h->scale = a.scale;
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        h->bytes[s] = ROWS_APART(byte_rows(a.q + s * LANE_SLOTS));
        if (apart == 32)
            h->sum[s] = sum_of_x(&a, s / 2 * 2 * LANE_SLOTS, 2 * LANE_SLOTS, s % 2);
    }
}

#ifdef FORMAT_q4_k
#define LANE_K_q4_k 256
#define PLACE_q4_k  4

static inline void
q4_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct half_x h[2];
    load_half(x + k, 32, &h[0]);
    load_half(x + k + X_COLUMNS, 32, &h[1]);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at = (__global const uint *)rows->w->data +
                                  (rows->word[i] + (rows->words + k / 256 * 36));
        const uint4 head = vload4(0, at);
        const struct k_bytes f = k_bytes_of(head);
        float total = 0.0f, less = 0.0f;
#pragma unroll
        for (uint c = 0; c < 4; c++) { /* 64 columns in 32 bytes */
            const struct half_x *of = &h[c / 2];
            const uint j = c % 2 * 2;
            const uint s = f.scales[c / 2], m = f.minimums[c / 2];
            int4 dot = NIBBLES_APART(u4, of->bytes[j], vload4(1 + 2 * c, at), (int4)0);
            dot = NIBBLES_APART(u4, of->bytes[j + 1], vload4(2 + 2 * c, at), dot);
            dot = APART(u4, dot);
            total += (byte_of(s, j) * (float)both_bytes(dot.xy) +
                      byte_of(s, j + 1) * (float)both_bytes(dot.zw)) *
                     of->scale;
            less += byte_of(m, j) * of->sum[j] + byte_of(m, j + 1) * of->sum[j + 1];
        }
        const float2 d = halves(head.x);
        sum[i] += (d.x * total - d.y * less) * factor;
    }
}
#endif

/* The x of half a block in four steps, the bytes of 32 columns each. */
static inline void
load_byte_steps(__global const STORAGE(SRC) * x, struct activations *a)
{
    float v[X_VALUES];
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_bytes(x + 32 * s, 0, v + s * LANE_SLOTS);
    make_integers(v, a);
}

/* The x of a whole block: of 32 columns the first 16 and the others have factors of their own. */
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

/* Products of columns 32 s …, but for the scale of x: of the first 16 and of the others. */
static inline float2
block_products(const struct block_x *b, const uint s, uint8 bytes)
{
    const int4 dot = BYTES_APART(i8, b->bytes[s], bytes, (int4)0);
    return (float2)((float)both_bytes(dot.xy), (float)both_bytes(dot.zw));
}

#ifdef FORMAT_q2_k
#define LANE_K_q2_k 256
#define PLACE_q2_k  4

/* The sums of each 16 x of a block, for minimums, which are the high nibbles of 16 bytes. */
struct sums_x {
    a_rows2 rows;
    float scale;
};

static inline void
load_sums(__global const STORAGE(SRC) * x, struct sums_x *sums)
{
    const uint lane = get_sub_group_local_id(), per_lane = 16 / SG;
    float v[X_VALUES] = {0};
    struct activations a;
#pragma unroll
    for (uint i = 0; i < per_lane; i++) {
        float each[16];
        load_neighbours(x + (lane * per_lane + i) * 16, 16, each);
#pragma unroll
        for (uint c = 0; c < 16; c++)
            v[i] += each[c];
    }
    make_integers(v, &a);
    sums->scale = a.scale;
#if DP4A
    const uint high = (a.q[0] >> 8 & 0xffu) | (a.q[1] & 0xff00u);
    const uint low = ((a.q[0] & 0xffu) | (a.q[1] << 8 & 0xff00u)) ^ 0x8080u;
    const int2 first = (int2)((int)intel_sub_group_shuffle(high, lane & 6),
                              (int)intel_sub_group_shuffle(low, lane & 6));
    sums->rows = first | (int2)((int)high, (int)low) << 16; /* in odd lanes */
#elif SG == 16
    sums->rows =
        (short2)((short)(a.q[0] & 0xff00u), (short)((a.q[0] << 8 & 0xff00u) ^ 0x8000u));
#else
    const uint high = (a.q[0] & 0xff00u) | (a.q[1] << 16 & 0xff000000u);
    const uint low = ((a.q[0] << 8 & 0xff00u) | a.q[1] << 24) ^ 0x80008000u;
    sums->rows = (int2)((int)high, (int)low);
#endif
}

static inline float
sums_products(const struct sums_x *sums, uint4 bytes)
{
    return (float)both_bytes(HIGH_NIBBLES(sums->rows, bytes)) * sums->scale;
}

static inline void
q2_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct half_x h[2];
    struct sums_x x_sum;
    load_half(x + k, 64, &h[0]);
    load_half(x + k + X_COLUMNS, 64, &h[1]);
    load_sums(x + k, &x_sum);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at =
            (__global const uint *)rows->w->data +
            (rows->word[i] + (rows->words + k / 256 * (BYTES_q2_k / 4)));
        const uint4 head = vload4(0, at);
        const float2 d = halves(at[20]);
        const uint4 scales = head & 0x0f0f0f0fu;
        float total = 0.0f;
#pragma unroll
        for (uint s = 0; s < 2; s++) {
            const uint4 q[2] = {vload4(1 + s * 2, at), vload4(2 + s * 2, at)};
            float part[2] = {0};
#pragma unroll
            for (uint b = 0; b < 4; b++) { /* runs b / 2 and b / 2 + 2 */
                const uint4 two = q[b % 2] & (b / 2 ? 0xccccccccu : 0x33333333u);
                const int4 dot =
                    APART(u4, NIBBLES_APART(u4, h[s].bytes[b], two, (int4)0));
                part[b / 2] +=
                    byte_of_16(scales, 8 * s + b) * (float)both_bytes(dot.xy) +
                    byte_of_16(scales, 8 * s + 4 + b) * (float)both_bytes(dot.zw);
            }
            total += (part[0] + 0.25f * part[1]) * h[s].scale;
        }
        sum[i] += (d.x * total - d.y * sums_products(&x_sum, head)) * factor;
    }
}
#endif

#ifdef FORMAT_q3_k
#define LANE_K_q3_k 256
#define PLACE_q3_k  2

/* Scales of 6 bits less 32, a signed byte each, 4 times what they are. */
static inline uint4
q3_k_scales(const uint *word)
{
    const uint4 low = (uint4)(word[0] << 2, word[1] << 2, word[0] >> 2, word[1] >> 2);
    const uint4 high = (uint4)(word[2] << 6, word[2] << 4, word[2] << 2, word[2]);
    return ((low & 0x3c3c3c3cu) | (high & 0xc0c0c0c0u)) ^ 0x80808080u;
}

#if DP4A
#define q3_k_x                     block_x
#define Q3_K_LOAD(x, b)            load_block(x, b)
#define Q3_K_HALF(b, s, two, bits) q3_k_half(b, s, two, bits, scales)
#define Q3_K_TIMES                 (1.0f / (SIGNED_TIMES * 4 * 32))

/* Bytes 32 (q - 4) of columns 32 j … of half a block: two bits of `two` below the third one. */
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
#define Q3_K_TIMES (1.0f / (SIGNED_TIMES * 4 * 2))

static inline void
load_q3_k(__global const STORAGE(SRC) * x, struct q3_k_x *b)
{
    load_half(x, 64, &b->h[0]);
    load_half(x + X_COLUMNS, 64, &b->h[1]);
}
#define Q3_K_LOAD(x, b) load_q3_k(x, b)

/* The third bits of half a block's runs 0 … 3 of 32 columns: of each byte, bits 0 and 1 are those of
 * runs 0 and 1, bits 4 and 5 those of runs 2 and 3. */
static inline uint4
q3_k_third(uint4 bits, const uint half_block)
{
    return half_block ? bitselect(bits >> 4u, bits >> 2u, (uint4)0x30303030u)
                      : bitselect(bits, bits << 2u, (uint4)0x30303030u);
}

/* Nibbles 2 (q - 4) of runs p and p + 2, of whose q `two` has the low bits. */
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
        const uint4 q = q3_k_nibbles(vload4(b % 2, two),
                                     q3_k_third(vload4(b % 2, bits), s), b / 2);
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
    Q3_K_LOAD(x + k, &b);
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
        sum[i] += total * (factor * Q3_K_TIMES) *
                  half_bits(((__global const ushort *)rows->w->data)[at + 54]);
    }
}
#endif

#ifdef FORMAT_q6_k
#define LANE_K_q6_k 256
#define PLACE_q6_k  2

/* Bytes 4 (q - 32) of columns 32 j … of half a block: two bits of `high` above four of `low`. */
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

/* How many times too large q5_k_bytes makes run j of 32 columns. */
#define Q5_K_TIMES(j) ((j) % 2 ? (j) % 4 == 1 ? 2 : 8 : 1)

/* Bytes of columns 32 j …: nibbles, with bit j of `high` above. `raised` is high << 4: so the bit is
 * in its place for most runs, if odd ones are made larger. */
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
