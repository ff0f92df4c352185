/* SPDX-License-Identifier: Apache-2.0
 *
 * rotation.h for a row across the lanes of a sub-group: element c * SG + lane is y[c] of its lane.
 */
#include "rotation.h"
#include "sub_group.h"

/* The value of the lane across a stride. */
#define ACROSS(x, stride) intel_sub_group_shuffle(x, get_sub_group_local_id() ^ (stride))

/* The strides within the lanes, of blocks of b: what becomes of one element of each lane. */
static inline float
rotate_across(float x, uint b)
{
    const uint lane = get_sub_group_local_id();
#pragma unroll
    for (uint step = 1; step < SG && step < b; step *= 2) {
        const float other = ACROSS(x, step);
        x = lane & step ? other - x : x + other;
    }
    return x;
}

/* The strides between the `chunks` elements of a lane, and the factor. */
static inline void
rotate_chunks(float *y, uint chunks, uint b)
{
#pragma unroll
    for (uint step = SG; step < b; step *= 2)
#pragma unroll
        for (uint c = 0; c < chunks; c++)
            if (!(c & step / SG)) {
                const float low = y[c], high = y[c + step / SG];
                y[c] = low + high;
                y[c + step / SG] = low - high;
            }
#pragma unroll
    for (uint c = 0; b > 1 && c < chunks; c++)
        y[c] *= ROOT_OF(b);
}

/* `chunks` elements of each lane in blocks of b; both are constants. Behind the last whole block
 * may be elements of no row. */
static inline void
rotate_lanes(float *y, uint chunks, uint b)
{
#pragma unroll
    for (uint c = 0; c < chunks; c++)
        y[c] = rotate_across(y[c], b);
    rotate_chunks(y, chunks, b);
}
