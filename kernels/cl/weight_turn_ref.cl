/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales and zero points of a weight with rows innermost, as oneDNN reads them:
 *
 *     scale_out[e][g][n] = scale of group g in row n of expert e;  zp_out as well, in 8 bits
 *
 * A work-item moves one of each; global size {E * N, K / GROUP}.
 */
#include "weights.h"

#ifndef OUT
#define OUT f16 /* of the scales: f16 or f32 */
#endif

__kernel void
weight_turn_ref(__global const uchar *scale, __global const uchar *zp,
                __global STORAGE(OUT) * scale_out, __global uchar *zp_out, uint n_count)
{
    const ulong row = get_global_id(0), g = get_global_id(1);
    const uint groups = (uint)get_global_size(1);
    const ulong at = (row / n_count * groups + g) * n_count + row % n_count;
    STORE(OUT, scale_out, at, weight_scale(scale, row, (uint)g, n_count, groups));
    if (zp_out)
        zp_out[at] = (uchar)(int)weight_zero_point(zp, row, (uint)g, n_count, groups);
}
