/* SPDX-License-Identifier: Apache-2.0
 *
 * Up to three weights of one format that meet the same activation, each with its own result:
 * one launch instead of three. Blocks of rows count through the segments; none has rows of two.
 *
 *     y0 = x W0^T + b0    y1 = x W1^T + b1    y2 = x W2^T + b2
 *
 *   SEGMENTS  1, 2 or 3
 *   DST       element of the results
 */
#include "types.h"

#ifndef SEGMENTS
#define SEGMENTS 1
#endif
#ifndef DST
#define DST f32
#endif

#define SEGMENT_PARAMETERS(i)                                                            \
    __global const uchar *data##i, __global const uchar *scale##i,                       \
        __global const uchar *zp##i, __global const float *bias##i,                      \
        __global STORAGE(DST) * y##i, uint rows##i

struct segment {
    __global const uchar *data, *scale, *zp;
    __global const float *bias;
    __global STORAGE(DST) * y;
    uint n_count; /* rows */
};

#define SEGMENT(i) ((struct segment){data##i, scale##i, zp##i, bias##i, y##i, rows##i})

/* Whether a block of `rows` rows lies behind those of a segment; it then counts from there. */
static inline bool
is_behind(const struct segment *s, uint *block, uint rows)
{
    const uint blocks = (s->n_count + rows - 1) / rows;
    const bool behind = *block >= blocks;
    *block -= behind ? blocks : 0;
    return behind;
}

/* s becomes the segment of a block, and the block counts from the segment's first; behind the
 * last one it has no rows. */
#if SEGMENTS == 1
#define ALL_SEGMENT_PARAMETERS       SEGMENT_PARAMETERS(0)
#define FIND_SEGMENT(s, block, rows) s = SEGMENT(0)
#elif SEGMENTS == 2
#define ALL_SEGMENT_PARAMETERS SEGMENT_PARAMETERS(0), SEGMENT_PARAMETERS(1)
#define FIND_SEGMENT(s, block, rows)                                                     \
    s = SEGMENT(0);                                                                      \
    if (is_behind(&s, &(block), rows))                                                   \
    s = SEGMENT(1)
#else
#define ALL_SEGMENT_PARAMETERS                                                           \
    SEGMENT_PARAMETERS(0), SEGMENT_PARAMETERS(1), SEGMENT_PARAMETERS(2)
#define FIND_SEGMENT(s, block, rows)                                                     \
    s = SEGMENT(0);                                                                      \
    if (is_behind(&s, &(block), rows)) {                                                 \
        s = SEGMENT(1);                                                                  \
        if (is_behind(&s, &(block), rows))                                               \
            s = SEGMENT(2);                                                              \
    }
#endif

/* Element n of token t of a segment's result: the product, its bias, and what is added to it
 * (same shape; NULL: nothing), rounded once. */
static inline void
store_result(const struct segment *s, __global const STORAGE(DST) * addend, ulong t,
             uint n, float product)
{
    const ulong at = t * s->n_count + n;
    float v = product + (s->bias ? s->bias[n] : 0.0f);
    if (addend)
        v += LOAD(DST, addend, at);
    STORE(DST, s->y, at, v);
}
