/* SPDX-License-Identifier: Apache-2.0
 *
 * Up to three weights (segments) that are multiplied by the same activations, in one launch instead
 * of three. Blocks of rows are numbered through all segments; no block has rows of two segments.
 *
 *     y0 = x W0^T + b0    y1 = x W1^T + b1    y2 = x W2^T + b2
 *     y0 = x W0^T + b0 + other
 *
 * GLU: one result, y0; a block has the same rows of W0 and, if present, of W1:
 *
 *     y0 = act(x W0^T + b0) (x W1^T + b1)
 *     y0 = act(x W0^T + b0) other
 *
 * Row t of `other` begins at t * other_step + other_first. A result is rounded once.
 *
 *   SEGMENTS  1, 2 or 3
 *   DST       element of the results and of other
 *   GLU       0 or 1; its activation is activation.h's
 *
 * Results are stored one by one, or up to 16 at a time where REAL is float16.
 */
#include "activation.h"
#include "weights.h"

#ifndef SEGMENTS
#define SEGMENTS 1
#endif
#ifndef GLU
#define GLU 0
#endif
#if GLU && SEGMENTS == 2
#define PRODUCTS 2 /* products for each element of a result: gate, then up */
#else
#define PRODUCTS 1
#endif

#define SEGMENT_PARAMETERS(i)                                                            \
    WEIGHT_PARAMETERS(w##i), __global const float *bias##i,                              \
        __global STORAGE(DST) * y##i, uint rows##i

#define OTHER_PARAMETERS                                                                 \
    __global const STORAGE(DST) * other, uint other_step, uint other_first

struct segment {
    uint index;
    struct weight w;
    __global const float *bias;
    __global STORAGE(DST) * y;
    uint n_count;                        /* rows */
    __global const STORAGE(DST) * other; /* NULL: none */
    uint other_step, other_first;
};

#define SEGMENT(i)                                                                       \
    ((struct segment){i, WEIGHT(w##i, k_count, i), bias##i, y##i, rows##i, other,        \
                      other_step, other_first})
/* The segment of the second product. */
#if PRODUCTS == 2
#define UP_SEGMENT SEGMENT(1)
#else
#define UP_SEGMENT SEGMENT(0) /* not read */
#endif

/* Returns whether a block of `rows` rows lies behind a segment's blocks; if so, *block becomes its
 * number after them. */
static inline bool
is_behind(const struct segment *s, uint *block, uint rows)
{
    const uint blocks = (s->n_count + rows - 1) / rows;
    const bool behind = *block >= blocks;
    *block -= behind ? blocks : 0;
    return behind;
}

/* Sets s to the segment of a block, and the block to its number within the segment; behind the last
 * segment it has no rows. */
#if SEGMENTS == 1
#define ALL_SEGMENT_PARAMETERS       SEGMENT_PARAMETERS(0)
#define FIND_SEGMENT(s, block, rows) s = SEGMENT(0)
#elif PRODUCTS == 2
#define ALL_SEGMENT_PARAMETERS       SEGMENT_PARAMETERS(0), SEGMENT_PARAMETERS(1)
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

/* Stores elements n ... n + count - 1 of token t of a segment's result; one element, or at most 16
 * if REAL is float16. v: its products; u: with PRODUCTS 2, the products of up. */
#ifdef REAL_IS_16
#define SOME(T, p, i)         LOAD_SOME(T, p, i, count)
#define PUT_SOME(T, p, i, v)  STORE_SOME(T, p, i, count, v)
#else
#define SOME(T, p, i)         LOAD(T, p, i)
#define PUT_SOME(T, p, i, v)  STORE(T, p, i, v)
#endif
static inline void
store_results(const struct segment *s, const struct segment *up, ulong t, uint n,
              uint count, REAL v, REAL u)
{
    if (s->bias)
        v += SOME(f32, s->bias, n);
    if (PRODUCTS == 2 && up->bias)
        u += SOME(f32, up->bias, n);
    if (PRODUCTS == 1 && s->other)
        u = SOME(DST, s->other, t * s->other_step + s->other_first + n);
#if GLU
    v = gated(v, u, 1.0f);
#else
    if (s->other)
        v += u;
#endif
    PUT_SOME(DST, s->y, t * s->n_count + n, v);
}
