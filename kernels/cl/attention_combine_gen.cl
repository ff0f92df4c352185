/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the partitions that attention_decode has computed; formulas as in attention_combine_ref.
 *
 * A work-group of ITEMS computes one row (b, t, h), a work-item every ITEMS-th element; each of
 * them computes the weights of the few partitions itself.
 */
#include "attention_cache.h"
#include "group_rotation.h"

#ifndef SRC
#define SRC f32 /* type of the result */
#endif

__kernel void
attention_combine_gen(__global const float *partial, __global const float *sinks,
                      __global STORAGE(SRC) *out, ulong rows, int partitions,
                      __global int *prepared)
{
    __local float sum[DV];
    const ulong row = get_group_id(0);
    __global const float *from = partial + row * partitions * (DV + 2);
    float m = sinks ? sinks[row % HEADS_Q] : -INFINITY;
    for (int p = 0; p < partitions; p++)
        m = fmax(m, from[p * (DV + 2) + DV]);
    float l = sinks ? exp(sinks[row % HEADS_Q] - m) : 0.0f;
    for (int p = 0; p < partitions; p++)
        if (from[p * (DV + 2) + DV] != -INFINITY)
            l += exp(from[p * (DV + 2) + DV] - m) * from[p * (DV + 2) + DV + 1];
    const float norm = l > 0.0f ? 1.0f / l : 0.0f;
    for (int i = get_local_id(0); i < DV; i += ITEMS) {
        float o = 0.0f;
        for (int p = 0; p < partitions; p++) {
            const float m_p = from[p * (DV + 2) + DV];
            if (m_p != -INFINITY)
                o += exp(m_p - m) * from[p * (DV + 2) + i];
        }
        sum[i] = o;
    }
    rotate_local(sum, DV, VALUE_ROTATION, VALUE_ROTATION);
    for (int i = get_local_id(0); i < DV; i += ITEMS)
        STORE(SRC, out, row * DV + i, sum[i] * norm);
}
