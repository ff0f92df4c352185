/* SPDX-License-Identifier: Apache-2.0
 *
 * A chain of row-wise steps (include/row_chain.h). A work-item makes a span of rows, 16
 * elements at a time: ROW is a multiple of 16.
 */
#define REAL  float16
#define READ  LOAD16
#define WRITE STORE16
#include "row_chain_elements.h"
#include "span.h"
#include "vector.h"

__kernel void
row_chain_vec(ROW_CHAIN_PARAMETERS, ulong rows)
{
    for (ulong r = span_begin(rows); r < span_end(rows); r++) {
        float scale[SCALES + 1];
#pragma unroll
        for (int turn = 0; turn <= SCALES; turn++) {
            float16 sums = 0.0f;
            for (int i = 0; i < ROW; i += 16) {
                const float16 v = elements(ROW_CHAIN_ARGUMENTS, r * ROW, i, turn, scale);
                sums += v * v;
            }
            if (turn < SCALES)
                scale[turn] = scale_of(sum16(sums), turn);
        }
    }
}
