/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows (token, head) of a sub-group of matrix_attention.h: which they are, what they see, and q
 * in local memory, as matrix engines take it.
 */
#ifndef SRC
#define SRC f16 /* q is read as halves; no other type is taken */
#endif
#include "attention.h"
#include "matrix_reads.h"

#define TILE_ROWS   (8 * ROW_BLOCKS)
#define VALUE_PARTS ((DV + 127) / 128)
/* Chunks of values, a value a lane: of a head; those that are rotated or ordered together; those of
 * a part, which keeps these together. */
#define CHUNKS      ((DV + SG - 1) / SG)
#define ROTATED     ((VALUE_ROTATION + SG - 1) / SG)
#define TOGETHER    (ROTATED > 16 / SG ? ROTATED : 16 / SG)
#define VALUE_CHUNKS                                                                     \
    (((CHUNKS + VALUE_PARTS - 1) / VALUE_PARTS + TOGETHER - 1) / TOGETHER * TOGETHER)
#define SUB_GROUPS  4 /* of a work-group, at most (GROUPED_SUB_GROUPS of primitives/launch.c) */

/* q of the sub-groups of a work-group: a step of 16 elements of 8 rows after the other. */
#define LOCAL_QUERIES __local slots queries[SUB_GROUPS * ROW_BLOCKS * (D / 16) * 8 * SG]

/* The rows of a sub-group. */
struct query {
    struct sequence s;
    int head_kv, first, n, first_value; /* n of TILE_ROWS there are */
    int tile_low, tile_end;             /* positions that any of them sees */
    int whole_low, whole_end;           /* that all of them see            */
    __local slots *q;
};

/* Those behind the last row repeat it. */
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

/* Where row i lies among the rows (row, head) of q and the result. */
static inline ulong
row_index(const struct query *r, int i)
{
    return (ulong)(r->s.begin + row_token(r, i)) * HEADS_Q + row_head(r, i);
}

/* The rows of a unit, which makes a part of the values of a tile; false: it has none. */
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

/* The slots of a lane in a step of a row. */
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
