/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens as rows of 16-bit integers (shorts.h), for linear_gemm_vnni. A work-item packs one
 * row; global size {T}, local size 1.
 */
#ifndef SRC
#define SRC f32 /* element of x */
#endif
#include "planes.h"
#include "shorts.h"

__kernel void
linear_pack_vnni(__global const STORAGE(SRC) * x, __global int *rows, uint k_count)
{
    const ulong t = get_global_id(0);
    write_short_row(x + t * k_count, k_count,
                    rows + t * short_row_words((k_count + BLOCK - 1) / BLOCK, PLANES));
}
