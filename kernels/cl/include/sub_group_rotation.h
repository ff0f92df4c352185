/* SPDX-License-Identifier: Apache-2.0
 *
 * rotation.h for a row distributed over the lanes of a sub-group: element c * SG + lane is y[c].
 */
#include "rotation.h"
#include "sub_group.h"

/* The value x of the lane at distance `stride`. */
#define ACROSS(x, stride) intel_sub_group_shuffle(x, get_sub_group_local_id() ^ (stride))

/* Does the step of a stride between lanes. */
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

/* Does the step of a stride between the elements of a lane. */
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

/* Does all strides between lanes for blocks of b, on one element of each lane; returns the lane's
 * element. */
static inline float
rotate_across(float x, uint b)
{
#pragma unroll
    for (uint step = 1; step < SG && step < b; step *= 2)
        rotate_step_across(&x, 1, step);
    return x;
}

/* Does all strides between the `chunks` elements of a lane, and multiplies by the factor. */
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

/* Rotates `chunks` elements of each lane in blocks of b; both are constants. Elements behind the
 * row's last whole block may be anything. */
static inline void
rotate_lanes(float *y, uint chunks, uint b)
{
#pragma unroll
    for (uint c = 0; c < chunks; c++)
        y[c] = rotate_across(y[c], b);
    rotate_chunks(y, chunks, b);
}
