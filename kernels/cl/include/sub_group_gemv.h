/* SPDX-License-Identifier: Apache-2.0
 *
 * ROWS rows of weights times one activation row, with K distributed over the lanes:
 *
 *     sum_k w[n][k] x[k] = sum_words scale (sum_{k in word} q[k] x[k] - zp sum_{k in word} x[k])
 *
 * A block read gives each lane of the sub-group one 32-bit word of a row: LANE_COLUMNS neighbouring
 * columns of one group (8 of 4 bits, 4 of 8 bits, 2 halves, 1 float). The same columns of x are
 * loaded once for ROWS rows, each scaled down by the position of its bits in the word, so that a
 * weight costs a mask, a conversion and a multiplication. Rows are whole words; data, scales and x
 * are aligned to their elements. SG is 16, or 32 from xe_hpc on: before, chips have no block reads
 * of 32 lanes.
 */
#include "planes.h"
#include "sub_group.h"

#ifndef ROWS
#define ROWS 4 /* rows of a sub-group; at most SG */
#endif

#if BLOCKS
#define LANE_COLUMNS 16
#elif GROUP
#define LANE_COLUMNS PLANES
#else
#define LANE_COLUMNS (4 / SIZE(WEI))
#endif

#if !BLOCKS
/* Returns the word of this lane in the SG words from word b of a row on. `whole`: the row has all
 * these words; else 0 past its end. */
static inline uint
lane_word(__global const uint *row, uint b, uint words, const bool whole)
{
    if (whole)
        return intel_sub_group_block_read(row + b);
    const uint at = b + get_sub_group_local_id();
    return at < words ? row[at] : 0;
}
#endif

/* Loads the x that are multiplied by word `at`; zeros past the end. */
static inline void
lane_x(__global const STORAGE(SRC) * x, uint at, uint words, const bool whole,
       float to[LANE_COLUMNS])
{
    const bool in = whole || at < words;
    x += (in ? at : 0) * LANE_COLUMNS;
#if IS_HALF(SRC) && LANE_COLUMNS > 1
#pragma unroll
    for (uint j = 0; j < LANE_COLUMNS; j += 2) {
        const float2 two = halves(((__global const uint *)x)[j / 2]);
        to[j] = in ? two.x : 0.0f;
        to[j + 1] = in ? two.y : 0.0f;
    }
#else
#pragma unroll
    for (uint j = 0; j < LANE_COLUMNS; j++)
        to[j] = in ? LOAD(SRC, x, j) : 0.0f;
#endif
}

#if GROUP
#define BITS (32 / LANE_COLUMNS)

/* Scales x[j] down by the position of plane j in a word, except for the topmost plane; returns the
 * sum of x before that. */
static inline float
meet_planes(float x[LANE_COLUMNS])
{
    float sum = 0.0f;
#pragma unroll
    for (uint j = 0; j < LANE_COLUMNS; j++) {
        sum += x[j];
        x[j] *= j + 1 < LANE_COLUMNS ? 1.0f / (float)(1u << (j * BITS)) : 1.0f;
    }
    return sum;
}

static inline float
word_dot(uint word, const float x[LANE_COLUMNS])
{
    float sum = (float)(word >> (32 - BITS)) * x[LANE_COLUMNS - 1];
#pragma unroll
    for (uint j = 0; j + 1 < LANE_COLUMNS; j++)
        sum += (float)(int)(word & (((1u << BITS) - 1) << (j * BITS))) * x[j];
    return sum;
}
#elif !BLOCKS
static inline float
word_dot_f16(uint word, const float x[LANE_COLUMNS])
{
    const float2 w = halves(word);
    return w.x * x[0] + w.y * x[LANE_COLUMNS - 1];
}

static inline float
word_dot_bf16(uint word, const float x[LANE_COLUMNS])
{
    return as_float(word << 16) * x[0] + as_float(word & 0xffff0000u) * x[LANE_COLUMNS - 1];
}

static inline float
word_dot_f32(uint word, const float x[LANE_COLUMNS])
{
    return as_float(word) * x[0];
}

#define word_dot(word, x) PASTE(word_dot_, WEI)(word, x)
#endif

/* The stored rows of a weight that are multiplied. */
struct gemv_rows {
    const struct weight *w;
    ulong n[ROWS];
    ulong begin[ROWS]; /* their first elements, computed once for all words */
};

/* sum += the products of this lane's word of the SG words from b on. */
static inline void
add_words(const uint format, const struct gemv_rows *rows,
          __global const STORAGE(SRC) * x, uint b, const bool whole, float sum[ROWS])
{
    const struct weight *w = rows->w;
    const uint words = w->k_count / LANE_COLUMNS, at = b + get_sub_group_local_id();
    float lane[LANE_COLUMNS];
    lane_x(x, at, words, whole, lane);
#if GROUP
#if GROUP % (SG * LANE_COLUMNS) == 0
    const uint g = b * LANE_COLUMNS / GROUP; /* equal in all lanes: read once */
#else
    const uint g = (whole ? at : min(at, words - 1)) * LANE_COLUMNS / GROUP;
#endif
    const float x_sum = meet_planes(lane);
#endif
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
#if BLOCKS
        float v[LANE_COLUMNS];
        vstore16(weights_of_format(format, w, rows->n[r], min(at, words - 1) * LANE_COLUMNS), 0, v);
#pragma unroll
        for (uint i = 0; i < LANE_COLUMNS; i++)
            sum[r] += v[i] * lane[i];
#else
        const uint word = lane_word(
            (__global const uint *)w->data + rows->begin[r] / LANE_COLUMNS, b, words, whole);
#if GROUP
        const ulong i = scale_behind(w, rows->n[r], rows->begin[r], g);
        const float zero = zero_point_at(w, i) + OFFSET;
        sum[r] +=
            (word_dot(word ^ FLIP, lane) - zero * x_sum) * ALIGNED(SCALE, w->scale, i);
#else
        sum[r] += word_dot(word, lane);
#endif
#endif
    }
}

static inline void
rows_of_format(const uint format, const struct weight *w, ulong first, ulong last,
               __global const STORAGE(SRC) * x, float sum[ROWS])
{
    struct gemv_rows rows = {w, {0}, {0}};
    const uint words = w->k_count / LANE_COLUMNS;
    uint b = 0;
#if !BLOCKS
    const ulong begin = row_begin(w, first);
#endif
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const uint behind = min(r, (uint)(last - first));
        rows.n[r] = first + behind;
#if !BLOCKS
        rows.begin[r] = begin + (ulong)behind * w->view.x;
#endif
        sum[r] = 0.0f;
    }
#pragma unroll 1
    for (; b + SG <= words; b += SG)
        add_words(format, &rows, x, b, true, sum);
    if (b < words)
        add_words(format, &rows, x, b, false, sum);
}

/* Computes this lane's share of the products of stored rows from `first` on; rows behind `last`
 * repeat it. The branch on the format is outside the loop, because inside all decoders would hold
 * registers. */
static inline void
rows_dot(const struct weight *w, ulong first, ulong last, __global const STORAGE(SRC) * x,
         float sum[ROWS])
{
#if BLOCKS && FORMATS > 1
    if (w->format == 0)
        rows_of_format(0, w, first, last, x, sum);
    else if (FORMATS == 2 || w->format == 1)
        rows_of_format(1, w, first, last, x, sum);
    else
        rows_of_format(2, w, first, last, x, sum);
#else
    rows_of_format(0, w, first, last, x, sum);
#endif
}

/* Returns the total of row r in lane r. */
static inline float
lane_total(const float sum[ROWS])
{
    float mine = 0.0f;
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const float total = sub_group_reduce_add(sum[r]);
        mine = get_sub_group_local_id() == r ? total : mine;
    }
    return mine;
}
