/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes a chain of row-wise steps (include/row_chain.h). A work-item computes one row.
 */
#define REAL  float
#define READ  LOAD
#define WRITE STORE
#include "row_chain_elements.h"

__kernel void
row_chain_ref(ROW_CHAIN_PARAMETERS, ulong rows, ROW_CHAIN_PREPARED)
{
    const ulong row = get_global_id(0) * (ulong)ROW;
    float scale[SCALES + 1];
    for (int turn = 0; turn <= SCALES; turn++) {
        float sum = 0.0f;
        for (int i = 0; i < ROW; i++) {
            const float v = elements(ROW_CHAIN_ARGUMENTS, row, i, turn, scale);
            sum += v * v;
        }
        if (turn < SCALES)
            scale[turn] = scale_of(sum, turn);
    }
}
