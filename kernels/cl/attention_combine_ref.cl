/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the partitions that attention_decode has computed:
 *
 *     m = max_p m_p (and the sink)    w_p = e^(m_p - m)
 *     out = sum_p w_p o_p / (sum_p w_p l_p + e^(sink - m))
 *
 * Values that are cached in few bits are rotated, and so is their sum: out is rotated back. A
 * work-item computes one row (b, t, h). A row that saw no key gives zeros.
 */
#include "attention_cache.h"
#include "rotation.h"

#ifndef SRC
#define SRC f32 /* type of the result */
#endif

__kernel void
attention_combine_ref(__global const float *partial, __global const float *sinks,
                      __global STORAGE(SRC) *out, ulong rows, int partitions,
                      __global int *prepared)
{
    const ulong row = get_global_id(0);
    __global const float *from = partial + row * partitions * (DV + 2);
    float m = sinks ? sinks[row % HEADS_Q] : -INFINITY;
    for (int p = 0; p < partitions; p++)
        m = fmax(m, from[p * (DV + 2) + DV]);
    float l = sinks ? exp(sinks[row % HEADS_Q] - m) : 0.0f;
    float o[DV];
    for (int i = 0; i < DV; i++)
        o[i] = 0.0f;
    for (int p = 0; p < partitions; p++, from += DV + 2) {
        if (from[DV] == -INFINITY)
            continue;
        const float w = exp(from[DV] - m);
        l += w * from[DV + 1];
        for (int i = 0; i < DV; i++)
            o[i] += w * from[i];
    }
    const float norm = l > 0.0f ? 1.0f / l : 0.0f;
    rotate_elements(o, DV, VALUE_ROTATION);
    for (int i = 0; i < DV; i++)
        STORE(SRC, out, row * DV + i, o[i] * norm);
}
