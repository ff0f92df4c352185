/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalises, rotates and stores q, k and v for attention (attention_inputs.h). A sub-group
 * computes one row, its elements across the lanes.
 */
#include "attention_inputs.h"
#include "sub_group_rotation.h"

/* A row is processed in parts, each as long as what is rotated together, but at least 32 elements:
 * a pair of blocks with scales. */
#define PART(rotation) ((rotation) > 32 ? (rotation) : 32)
#define MOST_CHUNKS    (128 / SG) /* elements of a part in each lane, SG apart */
#define BLOCK_CHUNKS   ((CACHE_BLOCK + SG - 1) / SG) /* elements of a block in each lane */

#if ANY_SCALES
/* Return the largest value of a block, or the sum of its values, in all of the block's lanes. */
static inline float
block_max(float x)
{
#pragma unroll
    for (int step = 1; step < SG && step < CACHE_BLOCK; step *= 2)
        x = fmax(x, ACROSS(x, step));
    return x;
}

static inline int
block_sum(int x)
{
#pragma unroll
    for (int step = 1; step < SG && step < CACHE_BLOCK; step *= 2)
        x += ACROSS(x, step);
    return x;
}

/* Converts this lane's elements of a block to 4 bits; returns the block's byte. */
static inline uint
block_in_4(const float *y, int *q)
{
    float most = 0.0f, least = INFINITY;
    uint best_byte = 0;
#pragma unroll
    for (int c = 0; c < BLOCK_CHUNKS; c++)
        most = fmax(most, fabs(y[c]));
    const int first = scale_of_4_bits(block_max(most));
#pragma unroll
    for (int i = 0; i < TRIED; i++) {
        const uint tried = tried_byte(first, i);
        const struct block b = block_u4(tried);
        const float inverse = inverse_of(b.scale);
        float at[BLOCK_CHUNKS];
        int squares = 0;
#pragma unroll
        for (int c = 0; c < BLOCK_CHUNKS; c++) {
            at[c] = in_4_bits(y[c] * inverse, b.centre);
            const int off = off_by(y[c] * inverse, at[c], b.centre);
            squares += off * off;
        }
        const float w = worth(block_sum(squares), b.scale);
#pragma unroll
        for (int c = 0; c < BLOCK_CHUNKS; c++)
            q[c] = w < least ? (int)at[c] : q[c];
        best_byte = w < least ? tried : best_byte;
        least = fmin(w, least);
    }
    return best_byte;
}

/* 32 elements, 32 / SG in each lane: their 4-bit values, and the bytes of their blocks. */
struct pair {
    int q[32 / SG];
    uint byte[32 / SG];
};

static inline void
pack_pair(const struct input_row *r, const float *y, struct pair *to)
{
#pragma unroll
    for (int c = 0; c < 32 / SG; c += BLOCK_CHUNKS) {
#if ANY_IS(IS_u4)
        to->byte[c] = block_in_4(y + c, to->q + c);
#endif
#if ANY_IS(IS_i8)
        float most = fabs(y[c]);
#pragma unroll
        for (int k = c + 1; k < c + BLOCK_CHUNKS; k++)
            most = fmax(most, fabs(y[k]));
        const uint of_8 = (uint)byte_of_i8(block_max(most));
        to->byte[c] = r->type == IS_i8 ? of_8 : to->byte[c];
#endif
    }
}

/* Stores 32 elements from `first` on, of a row with scales; a block's first lane stores its
 * byte. */
static inline void
store_pair(const struct input_row *r, int first, const float *y, const struct pair *p,
           const int high[16 / SG + 1])
{
    const int lane = (int)get_sub_group_local_id();
#pragma unroll
    for (int c = 0; c < 32 / SG; c++) {
        const int i = first + c * SG + lane;
        if (c % BLOCK_CHUNKS == 0 && lane % CACHE_BLOCK == 0 && i < r->n)
            r->to.scales[i / CACHE_BLOCK] = (uchar)p->byte[c];
#if ANY_IS(IS_i8)
        const struct block b = block_i8(p->byte[c / BLOCK_CHUNKS * BLOCK_CHUNKS]);
        if (r->type == IS_i8 && i < r->n)
            ((__global char *)r->to.values)[i] =
                convert_char_sat_rte(y[c] * inverse_of(b.scale));
#endif
#if ANY_IS(IS_u4)
        if (r->type == IS_u4 && c * SG + lane < 16)
            r->to.values[first / 2 + c * SG + lane] =
                (uchar)(p->q[c] | high[c % (16 / SG + 1)] << 4);
#endif
    }
}

/* Stores 32 rotated elements from `first` on. All exchanges between lanes precede the branches that
 * decide where elements are stored. */
static inline void
store_32_lanes(const struct input_row *r, int first, const float *y)
{
    const int lane = (int)get_sub_group_local_id();
    struct pair p;
    int high[16 / SG + 1];
    pack_pair(r, y, &p);
#if !ANY_IS(IS_u4)
    high[0] = 0;
#elif SG == 32
    high[0] = ACROSS(p.q[0], 16);
#else
#pragma unroll
    for (int c = 0; c < 16 / SG; c++)
        high[c] = p.q[c + 16 / SG];
#endif
    if (has_scales(r)) {
        if (r->to.values)
            store_pair(r, first, y, &p, high);
        return;
    }
#pragma unroll
    for (int c = 0; c < 32 / SG; c++)
        if (first + c * SG + lane < r->n)
            store_finished(r, first + c * SG + lane, y[c]);
}

/* Moves n elements of a lane down by one and appends x as the last. */
static inline void
shift_in(float *y, int n, float x)
{
#pragma unroll
    for (int c = 1; c < n; c++)
        y[c - 1] = y[c];
    y[n - 1] = x;
}

/* Moves n elements of a lane down by m, which drops the first m. */
static inline void
shift_out(float *y, int n, int m)
{
#pragma unroll
    for (int c = m; c < n; c++)
        y[c - m] = y[c];
}

/* Writes the first n elements of the row, rotated in blocks of b, a constant. Elements are shifted
 * in one by one and shifted out in pairs of blocks, by loops whose step compilers do not know. With
 * a constant step Intel's compiler unrolls them; then the addresses and exchanged values of all
 * elements are live at once, more than there are registers. */
static inline void
write_rotated(const struct input_row *r, float factor, int b, int n)
{
    const int lane = (int)get_sub_group_local_id(), step = (int)get_sub_group_size();
#pragma unroll 1
    for (int first = 0; first < n; first += PART(b)) {
        float y[MOST_CHUNKS] = {0.0f};
#pragma unroll 1
        for (int i = first; i < first + PART(b); i += step) {
            const float x = i + lane < n ? finished(r, i + lane, factor) : 0.0f;
            shift_in(y, PART(b) / SG, rotate_across(x, (uint)b));
        }
        rotate_chunks(y, PART(b) / SG, (uint)b);
#pragma unroll 1
        for (int i = first; i < first + PART(b); i += 32 / SG * step) {
            store_32_lanes(r, i, y);
            shift_out(y, PART(b) / SG, 32 / SG);
        }
    }
}
#endif

SUB_GROUP_SIZE __kernel void
attention_inputs_sg(INPUT_PARAMETERS)
{
    const ulong id = sub_group_index();
    const int lane = (int)get_sub_group_local_id();
    const struct inputs in = INPUT_ARGUMENTS;
    if (id >= rows)
        return;
    const struct input_row r = find_row(&in, id);
    float squares = 0.0f;
    for (int i = lane; i < r.n; i += SG) {
        const float x = LOAD(SRC, r.x, i);
        squares += x * x;
    }
    const float factor = norm_factor(&r, sub_group_reduce_add(squares), epsilon);
#if ANY_SCALES
    /* loops that may run no times instead of branches (sub_group.h) */
    write_rotated(&r, factor, KEY_ROTATION, r.block == KEY_ROTATION ? r.n : 0);
#if KEY_ROTATION != VALUE_ROTATION
    write_rotated(&r, factor, VALUE_ROTATION, r.block == VALUE_ROTATION ? r.n : 0);
#endif
#else
    for (int i = lane; i < r.n; i += SG)
        store_finished(&r, i, finished(&r, i, factor));
#endif
}
