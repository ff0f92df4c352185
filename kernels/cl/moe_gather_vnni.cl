/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies token rows into expert order as 16-bit integers (prepared.h), in the order of the weights
 * that read them: row p is x[source[p] / top_k].
 *
 * A work-item moves one row. Global size {tiles * 16}, local size 1.
 */
#ifndef FORM
#define FORM 8, 0, 1
#endif
#include "prepared.h"

__kernel void
moe_gather_vnni(__global const STORAGE(SRC) * x, __global const int *tile_expert,
                __global const int *source, __global int *rows, uint k_count, uint top_k)
{
    const ulong p = get_global_id(0);
    if (tile_expert[p / 16] < 0 || source[p] < 0)
        return;
    PASTE(prepare_part_, SRC)(x + (ulong)(source[p] / (int)top_k) * k_count, k_count, 0,
                              k_count, rows + p * prepared_words(k_count, FORM), FORM);
}
