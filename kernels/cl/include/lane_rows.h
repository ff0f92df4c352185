/* SPDX-License-Identifier: Apache-2.0
 *
 * 32 rows of a weight times one activation row, by a work-group whose sub-groups divide K:
 *
 *     sum_k w[n][k] x[k]        the stored bytes in integer products, one row in each lane
 *
 * The weights are operand b of the products (integer_mad.h), as they are stored; the activations
 * are operand a, two rows of bytes (activation_bytes.h), 0 where there is no weight. Scales and
 * zero points are applied afterwards, in float, for each group or block. A sub-group multiplies all
 * 32 rows, SG at a time, because converting x to bytes costs as much as multiplying SG rows by
 * them.
 *
 *   SPLIT  sub-groups of a work-group: each takes every SPLIT-th unit of columns
 *
 * All sub-groups take the same number of turns, some with a factor of 0, because a device that
 * emulates sub-groups needs all sub-groups of a work-group in step. A slot that is ABSENT
 * (own_experts.h) has zeros as its row of x; its turns multiply them by the first columns of expert
 * 0.
 */
#include "activation_bytes.h"
#include "own_experts.h"
#include "planes.h"

#ifndef SPLIT
#define SPLIT 8
#endif

#define UNIT_ROWS  32
#define ROW_BLOCKS (UNIT_ROWS / SG)

#define LANE_ROWS_GROUP                                                                  \
    __attribute__((reqd_work_group_size(SPLIT * SG, 1, 1))) SUB_GROUP_SIZE

/* A lane's rows of one expert. Positions are 32-bit and count words (or other places), so that
 * compilers may address memory by the kernel's argument and an index. */
struct lane_rows {
    const struct weight *w;
    uint word[ROW_BLOCKS];  /* first word of the row of expert 0 */
    uint scale[ROW_BLOCKS]; /* scale of its first group */
    uint words, scales;     /* distance from expert 0 to the chosen expert */
};

/* The experts whose products are added up: expert ids[i] times row i of x, times weights[i]. */
struct slots {
    __global const int *ids;       /* NULL: `expert` */
    __global const float *weights; /* NULL: 1        */
    uint count, expert;
};

#if BLOCKS
#include "lane_blocks.h"
#else
static inline uint
unit_columns(const uint format)
{
    return X_COLUMNS;
}

/* RUN_K: columns of one group whose products are summed as integers, before the scale is
 * applied. */
#if GROUP % 32
#error "groups are whole steps of 32 columns"
#elif GROUP % 128 == 0
#define RUN_K 128
#elif GROUP % 64 == 0
#define RUN_K 64
#else
#define RUN_K 32
#endif

#if PLANES == 8
typedef nibble_sum step_sum;
#define LOAD_STEP(x, v)     load_nibbles(x, v)
#define STEP(a, words, sum) NIBBLES(WEI, a, vload4(0, words), sum)
#define STEPS_TOTAL(sum)    TOGETHER(WEI, sum)
#define STEPS_TIMES         PASTE(TIMES_, WEI)
#else
typedef int2 step_sum;
#define LOAD_STEP(x, v)     load_bytes(x, 0, v)
#define STEP(a, words, sum) PASTE(mad_, WEI)(a, vload8(0, words), sum)
#define STEPS_TOTAL(sum)    (sum)
#define STEPS_TIMES         1
#endif

static inline void
find_row(const uint format, struct lane_rows *rows, uint i, ulong row)
{
    rows->word[i] = (uint)(row_begin(rows->w, row) / PLANES);
    rows->scale[i] = (uint)scale_index(rows->w, row, 0);
}

static inline void
find_expert(const uint format, struct lane_rows *rows, uint expert)
{
    const uint4 view = rows->w->view;
    rows->words = expert * (view.z * (view.x / PLANES));
    rows->scales = expert * (view.z * (view.x / GROUP));
}

/* Adds to sum the products of a unit's columns from k on, up to the row's end, times `factor`. */
static inline void
add_unit(const uint format, const struct lane_rows *rows, __global const STORAGE(SRC) * x,
         uint k, float factor, float sum[ROW_BLOCKS])
{
    const struct weight *w = rows->w;
    const uint step = GROUP_MAJOR ? w->view.z : 1;
    const uint last =
        w->k_count - RUN_K; /* the last run; rows may end within a unit if runs are short */
    float v[X_VALUES];
    struct activations a;
#pragma unroll
    for (uint s = 0; s < X_COLUMNS; s += 32)
        LOAD_STEP(x + (RUN_K < X_COLUMNS ? min(k + s, w->k_count - 32) : k + s),
                  v + s / SG);
    make_integers(v, &a);
#pragma unroll
    for (uint run = 0; run < X_COLUMNS; run += RUN_K) {
        const uint from = RUN_K < X_COLUMNS ? min(k + run, last) : k;
        const uint g = rows->scales + from / GROUP * step;
        const float x_sum =
            HAS_ZP ? sum_of_x(&a, run / SG, RUN_K / SG, BOTH_PARTS) : 0.0f;
        const float scale = k + run <= last ? factor : 0.0f;
        a_rows2 bytes[RUN_K / 32];
#pragma unroll
        for (uint s = 0; s < RUN_K; s += 32)
            bytes[s / 32] = byte_rows(a.q + (run + s) / SG);
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            __global const uint *words = (__global const uint *)w->data +
                                         (rows->word[i] + (rows->words + from / PLANES));
            step_sum dot = 0;
#pragma unroll
            for (uint s = 0; s < RUN_K; s += 32)
                dot = STEP(bytes[s / 32], words + s / PLANES, dot);
            const float q_sum =
                (float)both_bytes(STEPS_TOTAL(dot)) * (a.scale / STEPS_TIMES);
            const float zero = zero_point_at(w, rows->scale[i] + g);
            sum[i] += (q_sum - zero * x_sum) *
                      (ALIGNED(SCALE, w->scale, rows->scale[i] + g) * scale);
        }
    }
}
#endif

/* Adds this sub-group's share of the products of rows `first` … with all slots, whose units are
 * numbered one slot after another; rows behind `last` repeat it. There is at least one turn,
 * because PoCL miscompiles barriers, of which its sub-groups are made, in loops that may run zero
 * times. */
static inline void
add_format(const uint format, const struct weight *w, const struct slots *slots,
           uint first, uint last, __global const STORAGE(SRC) * x, float sum[ROW_BLOCKS])
{
    const uint columns = unit_columns(format),
               units = (w->k_count + columns - 1) / columns;
    const uint all = units * slots->count;
    uint mine = sub_group_broadcast(get_sub_group_id(), 0);
    struct lane_rows rows = {w, {0}, {0}, 0, 0};
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++)
        find_row(format, &rows, i,
                 stored_row(w, 0, min(first + i * SG + get_sub_group_local_id(), last)));
#pragma unroll 1
    do {
        const uint u = min(mine, all - 1), slot = slots->count > 1 ? u / units : 0;
        const uint chosen = slots->ids ? slots->ids[slot] : slots->expert;
        const uint expert = IS_ABSENT(chosen) ? 0 : chosen;
        const uint unit = IS_ABSENT(chosen) ? 0 : u - slot * units;
        const float weight = slots->weights ? slots->weights[slot] : 1.0f;
        const float factor = weight * weight_factor(w, stored_row(w, expert, 0));
        find_expert(format, &rows, expert);
        add_unit(format, &rows, x + (ulong)slot * w->k_count,
                 unit * columns, mine < all ? factor : 0.0f, sum);
        mine += SPLIT;
    } while (mine / SPLIT * SPLIT < all);
}

/* The share that each sub-group has of each row's sum. */
typedef float row_shares[SPLIT][UNIT_ROWS];

static inline void
share_rows(__local row_shares *shares, const float sum[ROW_BLOCKS])
{
#pragma unroll
    for (uint i = 0; i < ROW_BLOCKS; i++)
        (*shares)[get_sub_group_id()][i * SG + get_sub_group_local_id()] = sum[i];
}

static inline float
row_total(__local row_shares *shares, uint row)
{
    float sum = 0.0f;
#pragma unroll
    for (uint s = 0; s < SPLIT; s++)
        sum += (*shares)[s][row];
    return sum;
}

/* Computes this sub-group's share of rows `first` … and stores it; after a barrier, row_total adds
 * up the shares. */
static inline void
multiply_rows(const struct weight *w, const struct slots *slots, uint first, uint last,
              __global const STORAGE(SRC) * x, __local row_shares *shares)
{
    float sum[ROW_BLOCKS] = {0};
#if BLOCKS && FORMATS > 1
    if (w->format == 0)
        add_format(0, w, slots, first, last, x, sum);
    else if (FORMATS == 2 || w->format == 1)
        add_format(1, w, slots, first, last, x, sum);
    else
        add_format(2, w, slots, first, last, x, sum);
#else
    add_format(0, w, slots, first, last, x, sum);
#endif
    share_rows(shares, sum);
}
