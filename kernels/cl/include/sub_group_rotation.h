/* SPDX-License-Identifier: Apache-2.0
 *
 * rotation.h for a row across the lanes of a sub-group: element c * SG + lane is y[c] of its lane.
 */
#include "rotation.h"
#include "sub_group.h"

/* The value of the lane across a stride. */
#define ACROSS(x, stride) intel_sub_group_shuffle(x, get_sub_group_local_id() ^ (stride))

/* A stride between lanes. */
static inline void
rotate_step_across(float *y, uint chunks, uint stride)
{
    const uint lane = get_sub_group_local_id();
#pragma unroll
    for (uint c = 0; c < chunks; c++) {
        const float other = ACROSS(y[c], stride);
        y[c] = lane & stride ? other - y[c] : y[c] + other;
    }
}

/* A stride between the elements of a lane. */
static inline void
rotate_step_within(float *y, uint chunks, uint stride)
{
#pragma unroll
    for (uint c = 0; c < chunks; c++)
        if (!(c & stride)) {
            const float low = y[c], high = y[c + stride];
            y[c] = low + high;
            y[c + stride] = low - high;
        }
}

/* The strides within the lanes, of blocks of b: what becomes of one element of each lane. */
static inline float
rotate_across(float x, uint b)
{
#pragma unroll
    for (uint step = 1; step < SG && step < b; step *= 2)
        rotate_step_across(&x, 1, step);
    return x;
}

/* The strides between the `chunks` elements of a lane, and the factor. */
static inline void
rotate_chunks(float *y, uint chunks, uint b)
{
#pragma unroll
    for (uint step = SG; step < b; step *= 2)
        rotate_step_within(y, chunks, step / SG);
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
