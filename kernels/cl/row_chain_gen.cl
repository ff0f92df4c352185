/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes a chain of row-wise steps (include/row_chain.h). A work-group of ITEMS work-items
 * computes one row: partial sums in registers, joined in local memory.
 */
#define REAL  float
#define READ  LOAD
#define WRITE STORE
#include "group.h"
#include "row_chain_elements.h"

__kernel void
row_chain_gen(ROW_CHAIN_PARAMETERS, ulong rows, ROW_CHAIN_PREPARED)
{
    __local float parts[ITEMS];
    const ulong row = get_group_id(0) * (ulong)ROW;
    float scale[SCALES + 1];
    for (int turn = 0; turn <= SCALES; turn++) {
        float sum = 0.0f;
        for (int i = get_local_id(0); i < ROW; i += ITEMS) {
            const float v = elements(ROW_CHAIN_ARGUMENTS, row, i, turn, scale);
            sum += v * v;
        }
        if (turn < SCALES)
            scale[turn] = scale_of(group_sum(parts, sum), turn);
    }
}
