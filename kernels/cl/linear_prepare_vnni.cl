/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation rows as linear_gemv_vnni and its kin read them: 16-bit integers (shorts.h); and the
 * sum of each group.
 *
 *     sums[row][g] = sum_{k in g} x[row][k]
 *
 * A work-item moves one row; global size {rows}, local size 1.
 */
#ifndef SRC
#define SRC f32 /* element of x */
#endif
#include "planes.h"
#include "shorts.h"

__kernel void
linear_prepare_vnni(__global const STORAGE(SRC) * x, __global int *rows,
                    __global float *sums, uint k_count)
{
    const ulong row = get_global_id(0);
    x += row * k_count;
    write_short_row(x, k_count,
                    rows + row * short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES));
#if GROUP
    const uint groups = k_count / GROUP;
    for (uint g = 0; g < groups; g++) {
        const uint end = (g + 1) * GROUP;
        float16 lanes = 0;
        uint k = g * GROUP;
        for (; k + 16 <= end; k += 16)
            lanes += LOAD16(SRC, x, k);
        float sum = sum16(lanes);
        for (; k < end; k++)
            sum += LOAD(SRC, x, k);
        sums[row * groups + g] = sum;
    }
#endif
}
