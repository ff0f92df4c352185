/* SPDX-License-Identifier: Apache-2.0
 *
 * rotation.h for a row across the lanes of a sub-group: element c * SG + lane is y[c] of its lane.
 */
#include "rotation.h"
#include "sub_group.h"

/* The value of the lane across a stride. */
#define ACROSS(x, stride) intel_sub_group_shuffle(x, get_sub_group_local_id() ^ (stride))

/* `chunks` elements of each lane in blocks of b; both are constants. Behind the last whole block
 * may be elements of no row. */
static inline void
rotate_lanes(float *y, uint chunks, uint b)
{
    const uint lane = get_sub_group_local_id();
#pragma unroll
    for (uint step = 1; step < SG && step < b; step *= 2)
#pragma unroll
        for (uint c = 0; c < chunks; c++) {
            const float other = ACROSS(y[c], step);
            y[c] = lane & step ? other - y[c] : y[c] + other;
        }
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
