/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 256 columns (lane_blocks.h) with numbers of 4 and 2 bits, which are multiplied as the
 * nibbles that the file has.
 */

/* Returns byte i of a word as a float, by the fewest instructions. */
static inline float
byte_of(uint word, const uint i)
{
#if SG == 16
    return (float)as_ushort2(word >> (i % 2 * 8) & 0x00ff00ffu)[i / 2];
#else
    return (float)as_uchar4(word)[i];
#endif
}

/* Returns byte i of 16 as a float. */
static inline float
byte_of_16(uint4 bytes, const uint i)
{
    return byte_of(bytes[i / 4], i % 4);
}

/* The scales and minimums of Q4_K and Q5_K (k_scales.h), one byte each: of sub-blocks 0 … 3, then 4
 * … 7. */
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

/* The x of half a block in four steps: 16 columns of a run of 32 and 16 columns of the run that is
 * `apart` (32 or 64) columns behind it. sum: the sums of x of the four runs (only for `apart` 32),
 * for minimums. */
struct half_x {
    apart_rows bytes[4];
    float scale, sum[4];
};

static inline void
load_half(__global const STORAGE(SRC) * x, const uint apart, struct half_x *h)
{
    float v[X_VALUES];
    struct activations a;
#if SG == 16
    float runs[8];
    load_runs(x, runs);
    load_runs(x + X_COLUMNS / 2, runs + 4);
#pragma unroll
    for (uint s = 0; s < 8; s++)
        v[apart == 32 ? s / 4 * 4 + s % 2 * 2 + s / 2 % 2 : s % 4 * 2 + s / 4] = runs[s];
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

#ifdef FORMAT_q2_k
#define LANE_K_q2_k 256
#define PLACE_q2_k  4

/* The sums of each 16 x of a block, as rows of bytes: they are multiplied by the minimums, the high
 * nibbles of 16 bytes. */
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
