/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the rows (token, head) that a sub-group of matrix_attention.h computes and the positions
 * that they see, and copies q to local memory in the layout of operand a (matrix_mad.h).
 */
#ifndef SRC
#define SRC f16 /* q is read as halves; no other type is taken */
#endif
#include "attention.h"
#include "matrix_reads.h"

#define TILE_ROWS   (8 * ROW_BLOCKS)
#define VALUE_PARTS ((DV + 127) / 128)
/* Numbers of chunks of SG values, a value a lane. CHUNKS: of a head; ROTATED: that are rotated
 * together; TOGETHER: that are rotated or reordered together, so they must be in one part;
 * VALUE_CHUNKS: of a part. */
#define CHUNKS      ((DV + SG - 1) / SG)
#define ROTATED     ((VALUE_ROTATION + SG - 1) / SG)
#define TOGETHER    (ROTATED > 16 / SG ? ROTATED : 16 / SG)
#define VALUE_CHUNKS                                                                     \
    (((CHUNKS + VALUE_PARTS - 1) / VALUE_PARTS + TOGETHER - 1) / TOGETHER * TOGETHER)
#define SUB_GROUPS  4 /* most of a work-group (GROUPED_SUB_GROUPS of primitives/launch.c) */

/* Declares local memory for q of all sub-groups of a work-group. Each has matrices a one after the
 * other: of each 8 rows all steps of 16 elements. */
#define LOCAL_QUERIES __local slots queries[SUB_GROUPS * ROW_BLOCKS * (D / 16) * 8 * SG]

/* The rows of a sub-group. */
struct query {
    struct sequence s;
    int head_kv, first, n, first_value; /* n: rows that exist, at most TILE_ROWS */
    int tile_low, tile_end;             /* [low, end): positions that any row sees */
    int whole_low, whole_end;           /* [low, end): positions that all rows see */
    __local slots *q;
};

/* Return the token and the head of row i; rows after the last one repeat it. */
static inline int
row_token(const struct query *r, int i)
{
    return (r->first + min(i, r->n - 1)) / GROUP_HEADS;
}

static inline int
row_head(const struct query *r, int i)
{
    return r->head_kv * GROUP_HEADS + (r->first + min(i, r->n - 1)) % GROUP_HEADS;
}

/* Returns the index of row i among the rows (token, head) of q and of the result. */
static inline ulong
row_index(const struct query *r, int i)
{
    return (ulong)(r->s.begin + row_token(r, i)) * HEADS_Q + row_head(r, i);
}

/* Sets *r to the rows of unit of work `unit`: a tile of rows, of whose values it computes one part.
 * False: the unit has no rows. */
static inline bool
find_rows(const struct attention *a, uint unit, __local slots *queries, struct query *r)
{
    const uint slots_ = tile_slots(a, GROUP_HEADS, TILE_ROWS);
    const struct place p = find_tile(a, unit / VALUE_PARTS % slots_, GROUP_HEADS, TILE_ROWS);
    r->s = p.s;
    r->first = p.first;
    r->n = p.n;
    r->first_value = (int)(unit % VALUE_PARTS) * VALUE_CHUNKS * SG;
    r->head_kv = (int)(unit / VALUE_PARTS / slots_);
    r->tile_low = first_seen(a, &r->s, row_token(r, 0));
    r->whole_low = first_seen(a, &r->s, row_token(r, TILE_ROWS - 1));
    r->whole_end = end_seen(&r->s, row_token(r, 0));
    r->tile_end = end_seen(&r->s, row_token(r, TILE_ROWS - 1));
    r->q = queries + get_sub_group_id() * (TILE_ROWS * (D / 16) * SG);
    return p.n > 0 && r->head_kv < HEADS_KV;
}

/* Limits what the rows see to the keys [first, end). */
static inline void
limit_keys(struct query *r, int first, int end)
{
    r->tile_low = max(r->tile_low, first);
    r->whole_low = max(r->whole_low, first);
    r->tile_end = min(r->tile_end, end);
    r->whole_end = min(r->whole_end, end);
}

/* Returns this lane's slots of a step of a row of q. */
static inline slots
load_slots(__global const half *row, uint step)
{
    const uint lane = get_sub_group_local_id();
#if IS_HALF(K_CACHE)
    return ((__global const slots *)row)[step * SG + lane];
#else
    __global const ushort *q = (__global const ushort *)row + step * 16;
#if SG == 8
    return q[element_of_slot(2 * lane)] | (uint)q[element_of_slot(2 * lane + 1)] << 16;
#else
    return q[element_of_slot(lane)];
#endif
#endif
}

static inline void
stage_queries(const struct attention *a, const struct query *r)
{
#pragma unroll 1
    for (int i = 0; i < TILE_ROWS; i++)
#pragma unroll
        for (uint step = 0; step < D / 16; step++)
            r->q[((i / 8 * (D / 16) + step) * 8 + i % 8) * SG + get_sub_group_local_id()] =
                load_slots(a->q + row_index(r, i) * D, step);
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
}
