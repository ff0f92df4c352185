/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins the partitions that attention_decode has computed; formula as in attention_combine_ref. A
 * work-item computes a span of rows; the sum of a row stays in a private array, one contiguous pass
 * over each partition.
 */
#include "attention_cache.h"
#include "prepared.h"
#include "rotation.h"
#include "span.h"

#ifndef SRC
#define SRC f32 /* type of the result */
#endif
#ifndef HEADS_EACH
#define HEADS_EACH 1 /* rows in a unit: a divisor of HEADS_Q */
#endif

#define FULL (DV / 16 * 16) /* elements in whole vectors */

/* o += w * from */
static void
add_partition(float *o, __global const float *from, float w)
{
    for (int i = 0; i < FULL; i += 16)
        vstore16(vload16(0, o + i) + w * vload16(0, from + i), 0, o + i);
    for (int i = FULL; i < DV; i++)
        o[i] += w * from[i];
}

static void
combine_row(__global const float *partial, __global const float *sinks, ulong row,
            int partitions, __global STORAGE(SRC) *out)
{
    __global const float *from = partial + row * partitions * (DV + 2);
    float m = sinks ? sinks[row % HEADS_Q] : -INFINITY;
    for (int p = 0; p < partitions; p++)
        m = fmax(m, from[p * (DV + 2) + DV]);
    float l = sinks ? exp(sinks[row % HEADS_Q] - m) : 0.0f;
    float o[DV] = {0};
    for (int p = 0; p < partitions; p++, from += DV + 2) {
        if (from[DV] == -INFINITY)
            continue;
        const float w = exp(from[DV] - m);
        l += w * from[DV + 1];
        add_partition(o, from, w);
    }
    const float norm = l > 0.0f ? 1.0f / l : 0.0f;
    rotate_vectors(o, DV, VALUE_ROTATION);
    for (int i = 0; i < FULL; i += 16)
        STORE16(SRC, out, row * DV + i, vload16(0, o + i) * norm);
    for (int i = FULL; i < DV; i++)
        STORE(SRC, out, row * DV + i, o[i] * norm);
}

__kernel void
attention_combine_vec(__global const float *partial, __global const float *sinks,
                      __global STORAGE(SRC) *out, ulong rows, int partitions,
                      __global int *prepared)
{
    const ulong units = rows / HEADS_EACH;
    const uint k_count = HEADS_Q * DV;
    for (ulong u = span_begin(units); u < span_end(units); u++) {
        const ulong row = u * HEADS_EACH, token = row / HEADS_Q;
        const uint first = row % HEADS_Q * DV;
        for (ulong r = row; r < row + HEADS_EACH; r++)
            combine_row(partial, sinks, r, partitions, out);
        if (prepared)
            PASTE(prepare_part_, SRC)(out + token * k_count, k_count, first,
                                      first + HEADS_EACH * DV,
                                      prepared + token * prepared_words(k_count, FORM),
                                      FORM);
    }
}
