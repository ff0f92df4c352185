/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the partitions that attention_decode has computed; formula as in attention_combine_ref. A
 * sub-group computes one row: first its partitions across the lanes, for the sums, then its DV
 * elements.
 */
#include "attention_cache.h"
#include "sub_group_rotation.h"

#ifndef SRC
#define SRC f32 /* type of the result */
#endif
/* Elements of a row that each lane computes at once: those that are rotated together. */
#define CHUNKS ((VALUE_ROTATION + SG - 1) / SG)

SUB_GROUP_SIZE __kernel void
attention_combine_sg(__global const float *partial, __global const float *sinks,
                     __global STORAGE(SRC) * out, ulong rows, int partitions,
                     __global int *prepared)
{
    const ulong row = sub_group_index();
    const int lane = (int)get_sub_group_local_id();
    __global const float *from = partial + row * partitions * (DV + 2);
    if (row >= rows)
        return;
    const float sink = sinks ? sinks[row % HEADS_Q] : -INFINITY;
    float m = sink, l = 0.0f;
    for (int p = lane; p < partitions; p += SG)
        m = fmax(m, from[p * (DV + 2) + DV]);
    m = sub_group_reduce_max(m);
    if (m != -INFINITY) {
        for (int p = lane; p < partitions; p += SG)
            l += exp(from[p * (DV + 2) + DV] - m) * from[p * (DV + 2) + DV + 1];
    }
    l = sub_group_reduce_add(l) + (sinks ? exp(sink - m) : 0.0f);
    const float norm = l > 0.0f ? 1.0f / l : 0.0f;
#pragma unroll 1
    for (int first = 0; first < DV; first += CHUNKS * SG) {
        float o[CHUNKS];
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int d = min(first + c * SG + lane, DV - 1);
            o[c] = 0.0f;
            for (int p = 0; p < partitions; p++) {
                const float m_p = from[p * (DV + 2) + DV];
                o[c] += m_p == -INFINITY ? 0.0f : exp(m_p - m) * from[p * (DV + 2) + d];
            }
        }
        rotate_lanes(o, CHUNKS, VALUE_ROTATION);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int d = first + c * SG + lane;
            if (d < DV)
                STORE(SRC, out, row * DV + d, o[c] * norm);
        }
    }
}
