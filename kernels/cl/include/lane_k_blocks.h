/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 256 columns whose numbers are made bytes before they are multiplied (lane_blocks.h):
 * of 2, 3, 5 and 6 bits. Signed ones end with the topmost bit of their byte: they are 4 or 32 times
 * what they are.
 */

/* A block's x as the bytes of 32 columns each, whose halves have factors of their own. */
static inline void
load_byte_steps(__global const STORAGE(SRC) * x, struct activations *a)
{
    float v[X_VALUES];
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_bytes(x + 32 * s, 0, v + s * LANE_SLOTS);
    make_integers(v, a);
}

/* The same of all of it, and the sums of each 16. */
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

/* Products of columns 32 s …: of the first 16 and of the others. */
static inline float2
block_products(const struct block_x *b, const uint s, uint8 bytes)
{
    const int4 dot = BYTES_APART(i8, b->bytes[s], bytes, (int4)0);
    return (float2)((float)both_bytes(dot.xy), (float)both_bytes(dot.zw)) *
           b->a[s / 4].scale;
}

/* The sums of these x. */
static inline float2
block_sums(const struct block_x *b, const uint s)
{
    const struct activations *a = &b->a[s / 4];
    uint sum = 0u - LANE_SLOTS * X_BITS;
#pragma unroll
    for (uint i = 0; i < LANE_SLOTS; i++)
        sum += a->q[s % 4 * LANE_SLOTS + i];
    const uint mine = get_sub_group_local_id() < SG / 2 ? sum : 0;
    const int first = sub_group_reduce_add((int)mine);
    const int all = sub_group_reduce_add((int)sum);
    return (float2)((float)first, (float)(all - first)) * a->scale;
}

#ifdef FORMAT_q2_k
#define LANE_K_q2_k 256
#define PLACE_q2_k  4

static inline void
q2_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct block_x b;
    float2 x_sum[8];
    load_block(x + k, &b);
#pragma unroll
    for (uint s = 0; s < 8; s++)
        x_sum[s] = block_sums(&b, s);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at =
            (__global const uint *)rows->w->data +
            (rows->word[i] + (rows->words + k / 256 * (BYTES_q2_k / 4)));
        const uchar16 scales = as_uchar16(vload4(0, at));
        float total = 0.0f, less = 0.0f;
#pragma unroll
        for (uint s = 0; s < 8; s++) {
            const uint8 q = (uint8)(vload4(1 + s / 4 * 2, at), vload4(2 + s / 4 * 2, at));
            const float2 dot = block_products(&b, s, q >> (s % 4 * 2) & 0x03030303u);
            const uchar first = scales[2 * s], second = scales[2 * s + 1];
            total += (float)(first & 15) * dot.x + (float)(second & 15) * dot.y;
            less += (float)(first >> 4) * x_sum[s].x + (float)(second >> 4) * x_sum[s].y;
        }
        const float2 d = halves(at[20]);
        sum[i] += (d.x * total - d.y * less) * factor;
    }
}
#endif

#ifdef FORMAT_q3_k
#define LANE_K_q3_k 256
#define PLACE_q3_k  2

/* Bytes 32 (q - 4) of columns 32 s …: the third bit above the two low ones. */
static inline uint8
q3_k_bytes(uint8 two, uint8 third, const uint s)
{
    const uint8 low = s % 4 == 3 ? two >> 1u : two << (5 - s % 4 * 2);
    return ((third << (7 - s) & 0x80808080u) ^ 0x80808080u) | (low & 0x60606060u);
}

static inline void
q3_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct block_x b;
    load_block(x + k, &b);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        const uint at = rows->word[i] + (rows->words + k / 256 * (BYTES_q3_k / 2));
        uint w[27];
        load_unaligned(rows->w->data, at, 27, 28, w);
        const uint8 third = (uint8)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
        const uint4 low = (uint4)(w[24], w[25], w[24] >> 4, w[25] >> 4) & 0x0f0f0f0fu;
        const uint4 high =
            (uint4)(w[26], w[26] >> 2, w[26] >> 4, w[26] >> 6) & 0x03030303u;
        const uchar16 scales = as_uchar16(low | high << 4u);
        float total = 0.0f;
#pragma unroll
        for (uint s = 0; s < 8; s++) {
            const uint *q = w + 8 + s / 4 * 8;
            const uint8 two = (uint8)(q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]);
            const float2 dot = block_products(&b, s, q3_k_bytes(two, third, s));
            total += ((float)scales[2 * s] - 32.0f) * dot.x +
                     ((float)scales[2 * s + 1] - 32.0f) * dot.y;
        }
        sum[i] += total * (factor / 32.0f) *
                  half_bits(((__global const ushort *)rows->w->data)[at + 54]);
    }
}
#endif

#ifdef FORMAT_q6_k
#define LANE_K_q6_k 256
#define PLACE_q6_k  2

/* Bytes 4 (q - 32) of columns 32 j … of half a block: two bits of high ones above four low ones. */
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
        for (uint h = 0; h < 2; h++) { /* by halves: a block is many registers */
            uint low[16], high[8], word[2];
            load_unaligned(rows->w->data, at + 32 * h, 16, 17, low);
            load_unaligned(rows->w->data, at + 64 + 16 * h, 8, 9, high);
            load_unaligned(rows->w->data, at + 96 + 4 * h, 2, 3, word);
            const char8 scales = as_char8((uint2)(word[0], word[1]));
#pragma unroll
            for (uint j = 0; j < 4; j++) {
                const float2 dot = block_products(
                    &b, 4 * h + j, q6_k_bytes(vload8(j % 2, low), vload8(0, high), j));
                total += (float)scales[2 * j] * dot.x + (float)scales[2 * j + 1] * dot.y;
            }
        }
        sum[i] += total * (0.25f * factor) *
                  half_bits(((__global const ushort *)rows->w->data)[at + 104]);
    }
}
#endif

#ifdef FORMAT_q5_k
#define LANE_K_q5_k 256
#define PLACE_q5_k  4

/* Bytes of columns 32 j …: nibbles, with bit j of `high` above. */
static inline uint8
q5_k_bytes(uint8 low, uint8 high, const uint j)
{
    const uint8 four = j % 2 ? low >> 4u : low;
    const uint8 one = j < 4 ? high << (4 - j) : high >> (j - 4);
    return (four & 0x0f0f0f0fu) | (one & 0x10101010u);
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
        const uint8 high = (uint8)(vload4(1, at), vload4(2, at));
        const struct k_bytes f = k_bytes_of(head);
        float total = 0.0f, less = 0.0f;
#pragma unroll
        for (uint c = 0; c < 4; c++) { /* 64 columns in 32 bytes */
            const uint8 low = (uint8)(vload4(3 + 2 * c, at), vload4(4 + 2 * c, at));
#pragma unroll
            for (uint j = 2 * c; j < 2 * c + 2; j++) {
                const int2 dot = mad_u8(bytes[j], q5_k_bytes(low, high, j), (int2)0);
                total += (float)as_uchar4(f.scales[j / 4])[j % 4] *
                         ((float)both_bytes(dot) * a[j / 4].scale);
                less += (float)as_uchar4(f.minimums[j / 4])[j % 4] * x_sum[j];
            }
        }
        const float2 d = halves(head.x);
        sum[i] += (d.x * total - d.y * less) * factor;
    }
}
#endif
