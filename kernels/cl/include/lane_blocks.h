/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in blocks, a row a lane, in integer products as the file has them (lane_rows.h). A
 * format says
 *
 *     LANE_K_<name>                              columns of a unit
 *     void <name>_add(rows, x, k, factor, sum)   what add_unit does
 *
 * Its rows are whole words: the host refuses others (primitives/matrix_engine.c).
 */

/* What 16 bytes of nibbles are multiplied by where the low ones and the high ones are 16 columns
 * each: a row of high and one of low bytes for the low nibbles, both for the high ones. q0 and q1
 * are LANE_SLOTS / 2 integers. */
static inline a_rows4
nibble_rows(const uint *q0, const uint *q1)
{
#if SG == 16
    return (short4)((short)(q0[0] >> 8 & 0xffu), (short)((q0[0] ^ 0x80u) & 0xffu),
                    (short)(q1[0] & 0xff00u), (short)(q1[0] << 8 ^ 0x8000u));
#else
    const uint high0 = (q0[1] << 8 & 0xff0000u) | (q0[0] >> 8 & 0xffu);
    const uint low0 = (q0[1] << 16 & 0xff0000u) | (q0[0] & 0xffu);
    const uint high1 = (q1[1] << 16 & 0xff000000u) | (q1[0] & 0xff00u);
    const uint low1 = q1[1] << 24 | (q1[0] << 8 & 0xff00u);
    return (int4)((int)high0, (int)(low0 ^ 0x800080u), (int)high1,
                  (int)(low1 ^ 0x80008000u));
#endif
}

/* … and where the nibbles of a byte are of one factor: columns k + j and k + 16 + j of byte j. */
static inline a_rows2
pair_rows(const uint *q0, const uint *q1)
{
#if SG == 16
    const uint q[2] = {q0[0], q1[0]};
#else
    const uint q[4] = {q0[0], q1[0], q0[1], q1[1]};
#endif
    return byte_rows(q);
}

#define STRIPE (16 / SG) /* integers of 16 columns in a lane */

/* ---- 64 columns in two blocks of 2 + 16 or 2 + 32 bytes ---------------------------------- */

/* The first block's data begin behind two bytes, so that its x lie two bytes later; those that do
 * not fit in meet the next words. */
struct two_blocks {
    a_rows2 first[2], second;
};

/* Lanes whose bytes of the first block meet its first words. */
static inline a_rows2
in_first_words(a_rows2 rows, const bool wide)
{
    const uint lane = get_sub_group_local_id();
#if SG == 16
    return rows & (short2)(short)(lane < (wide ? 1 : 2) ? 0 : -1);
#else
    return rows & (int2)(lane ? -1 : wide ? (int)0xffff0000 : 0);
#endif
}

static inline struct two_blocks
place_blocks(a_rows2 rotated, a_rows2 second, const bool wide)
{
    const a_rows2 first = in_first_words(rotated, wide);
    return (struct two_blocks){{first, rotated ^ first}, second};
}

/* Where in a run of 16 or 32 columns the x are that meet a lane's bytes of the first block. */
static inline uint
rotated_place(uint i, const uint run)
{
    return (get_sub_group_local_id() * (run / SG) + i - 2) & (run - 1);
}

/* Values of 128 columns for two such pairs of blocks: per pair four runs of 16, or two of 32, those
 * of the first block rotated. Where the row ends with one pair, it comes twice. */
static inline void
load_pairs(__global const STORAGE(SRC) * x, uint k, uint k_count, const uint run,
           float v[X_VALUES])
{
    const uint n = run / SG, lane = get_sub_group_local_id(); /* n of a run in a lane */
    const uint second = k + X_COLUMNS <= k_count ? 64 : 0;
#pragma unroll
    for (uint i = 0; i < X_VALUES; i++) {
        const uint from = i / n * run % 64;
        const uint place = from < 32 ? rotated_place(i % n, run) : lane * n + i % n;
        v[i] = ALIGNED(SRC, x + k + (i * SG < 64 ? 0 : second), from + place);
    }
}

/* The words of pair `pair` of a row. */
static inline __global const uint *
pair_words(const struct lane_rows *rows, uint i, uint pair, const uint words)
{
    return (__global const uint *)rows->w->data +
           (rows->word[i] + (rows->words + pair * words));
}

#ifdef FORMAT_q4_0
#define LANE_K_q4_0 128

static inline void
q4_0_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    const uint pairs = min((rows->w->k_count - k) / 64, 2u);
    float v[X_VALUES];
    struct activations a;
    load_pairs(x, k, rows->w->k_count, 16, v);
    make_integers(v, &a);
#pragma unroll
    for (uint p = 0; p < X_COLUMNS / 64; p++) {
        const uint *q = a.q + p * 4 * STRIPE;
        const struct two_blocks b = place_blocks(
            pair_rows(q, q + STRIPE), pair_rows(q + 2 * STRIPE, q + 3 * STRIPE), false);
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            __global const uint *at = pair_words(rows, i, k / 64 + min(p, pairs - 1), 9);
            const uint4 w0 = vload4(0, at), w4 = vload4(1, at);
            const uint4 q0 = w0 ^ 0x88888888u, q4 = w4 ^ 0x88888888u;
            const uint4 q5 = (uint4)(q4.yzw, at[8] ^ 0x88888888u);
            const int2 first = mad_i4(b.first[1], q4, mad_i4(b.first[0], q0, (int2)0));
            const int2 second = mad_i4(b.second, q5, (int2)0);
            sum[i] += (halves(w0.x).x * (float)both_bytes(first) +
                       halves(w4.x).y * (float)both_bytes(second)) *
                      (p < pairs ? a.scale * factor : 0.0f);
        }
    }
}
#endif

#ifdef FORMAT_q8_0
#define LANE_K_q8_0 128

static inline void
q8_0_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    const uint pairs = min((rows->w->k_count - k) / 64, 2u);
    float v[X_VALUES];
    struct activations a;
    load_pairs(x, k, rows->w->k_count, 32, v);
    make_integers(v, &a);
#pragma unroll
    for (uint p = 0; p < X_COLUMNS / 64; p++) {
        const uint *q = a.q + p * 2 * LANE_SLOTS;
        const struct two_blocks b =
            place_blocks(byte_rows(q), byte_rows(q + LANE_SLOTS), true);
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            __global const uint *at = pair_words(rows, i, k / 64 + min(p, pairs - 1), 17);
            const uint8 w0 = (uint8)(vload4(0, at), vload4(1, at));
            const uint8 w8 = (uint8)(vload4(2, at), vload4(3, at));
            const uint8 w9 = (uint8)(w8.s1234, w8.s567, at[16]);
            const int2 first = mad_i8(b.first[1], w8, mad_i8(b.first[0], w0, (int2)0));
            const int2 second = mad_i8(b.second, w9, (int2)0);
            sum[i] += (halves(w0.s0).x * (float)both_bytes(first) +
                       halves(w8.s0).y * (float)both_bytes(second)) *
                      (p < pairs ? a.scale * factor : 0.0f);
        }
    }
}
#endif

/* ---- blocks of 256 columns --------------------------------------------------------------- */

/* Half a block's x as stripes of 16 columns, and what meets minimums: the sums of 32. */
struct half_x {
    struct activations a;
    float sum[X_COLUMNS / 32];
};

static inline void
load_half(__global const STORAGE(SRC) * x, uint k, struct half_x *h)
{
    float v[X_VALUES];
    load_values(x, k, UINT_MAX, STRIPE, v);
    make_integers(v, &h->a);
#pragma unroll
    for (uint i = 0; i < X_COLUMNS / 32; i++)
        h->sum[i] = sum_of_x(&h->a, i * 2 * STRIPE, 2 * STRIPE);
}

#ifdef FORMAT_q4_k
#define LANE_K_q4_k 256

static inline void
q4_k_add(const struct lane_rows *rows, __global const STORAGE(SRC) * x, uint k,
         float factor, float sum[ROW_BLOCKS])
{
    struct half_x h[2];
    load_half(x, k, &h[0]);
    load_half(x, k + X_COLUMNS, &h[1]);
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++) {
        __global const uint *at = (__global const uint *)rows->w->data +
                                  (rows->word[i] + (rows->words + k / 256 * 36));
        const uint4 head = vload4(0, at);
        const uint2 scales =
            (uint2)(head.y & 0x3f3f3f3fu,
                    (head.w & 0x0f0f0f0fu) | (head.y >> 2 & 0x30303030u));
        const uint2 minimums =
            (uint2)(head.z & 0x3f3f3f3fu,
                    (head.w >> 4 & 0x0f0f0f0fu) | (head.z >> 2 & 0x30303030u));
        float total = 0.0f, less = 0.0f;
#pragma unroll
        for (uint c = 0; c < 4; c++) { /* 64 columns in 32 bytes */
            const struct half_x *h2 = &h[c / 2];
            const uint *q = h2->a.q + c % 2 * 4 * STRIPE;
            const uchar4 s = as_uchar4(scales[c / 2]), m = as_uchar4(minimums[c / 2]);
            int4 dot =
                mad_u4(nibble_rows(q, q + 2 * STRIPE), vload4(1 + 2 * c, at), (int4)0);
            dot = mad_u4(nibble_rows(q + STRIPE, q + 3 * STRIPE), vload4(2 + 2 * c, at),
                         dot);
            const uint j = c % 2 * 2;
            total += ((float)s[j] * (float)both_bytes(dot.xy) +
                      (float)s[j + 1] * (float)both_bytes(dot.zw)) *
                     h2->a.scale;
            less += (float)m[j] * h2->sum[j] + (float)m[j + 1] * h2->sum[j + 1];
        }
        const float2 d = halves(head.x);
        sum[i] += (d.x * total - d.y * less) * factor;
    }
}
#endif

/* ---- any of them ------------------------------------------------------------------------- */

static inline uint
unit_columns(const uint format)
{
#define LANE_COLUMNS(format) PASTE(LANE_K_, format)
    return BY_FORMAT(format, LANE_COLUMNS);
}

static inline void
find_row(const uint format, struct lane_rows *rows, uint i, ulong row)
{
#define LANE_WORD(format)                                                                \
    (uint)((row * (rows->w->view.x / PASTE(COLUMNS_, format)) +                          \
            rows->w->view.y / PASTE(COLUMNS_, format)) *                                 \
           PASTE(BYTES_, format) / 4)
    rows->word[i] = BY_FORMAT(format, LANE_WORD);
}

static inline void
find_expert(const uint format, struct lane_rows *rows, uint expert)
{
#define LANE_WORDS(format)                                                               \
    rows->w->view.x / PASTE(COLUMNS_, format) * PASTE(BYTES_, format) / 4
    rows->words = expert * (rows->w->view.z * (BY_FORMAT(format, LANE_WORDS)));
}

#define ADD_FORMAT(format) PASTE(format, _add)(rows, x, k, factor, sum)
static inline void
add_unit(const uint format, const struct lane_rows *rows, __global const STORAGE(SRC) * x,
         uint k, float factor, float sum[ROW_BLOCKS])
{
    if (FORMATS > 2 && format == 2)
        ADD_FORMAT(FORMAT2);
    else if (FORMATS > 1 && format == 1)
        ADD_FORMAT(FORMAT1);
    else
        ADD_FORMAT(FORMAT0);
}
