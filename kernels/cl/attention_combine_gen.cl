/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the partitions of attention_decode; formulas as in attention_combine_ref.
 *
 * A work-group of ITEMS makes one row (b, t, h), a work-item every ITEMS-th element; all of them
 * find the weights of the few partitions for themselves.
 */
#include "types.h"

#ifndef SRC
#define SRC f32 /* of the result */
#endif
#ifndef DV
#define DV      64
#define HEADS_Q 4
#endif
#ifndef ITEMS
#define ITEMS 64 /* the launch's local size */
#endif

__kernel void
attention_combine_gen(__global const float *partial, __global const float *sinks,
                      __global STORAGE(SRC) *out, ulong rows, int partitions,
                      __global int *prepared)
{
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
        STORE(SRC, out, row * DV + i, o * norm);
    }
}
