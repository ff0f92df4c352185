/* SPDX-License-Identifier: Apache-2.0
 *
 * A chain of row-wise steps (include/row_chain.h). A work-item computes a span of rows, 16 elements
 * at a time: ROW is a multiple of 16. prepared0 … (NULL: unwanted): also writes results y0 … as
 * prepared rows (prepared.h), in the forms FORM0 …
 */
#ifndef FORM0
#define FORM0 0, 0, 0
#endif
#ifndef FORM1
#define FORM1 0, 0, 0
#endif
#ifndef FORM2
#define FORM2 0, 0, 0
#endif
#ifndef FORM3
#define FORM3 0, 0, 0
#endif
#define REAL  float16
#define READ  LOAD16
#define WRITE STORE16
#include "prepared.h"
#include "row_chain_elements.h"
#include "span.h"

__kernel void
row_chain_vec(ROW_CHAIN_PARAMETERS, ulong rows, ROW_CHAIN_PREPARED)
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
        PASTE(prepare_row_, Y0)(y0, ROW, r, prepared0, FORM0);
        PASTE(prepare_row_, Y1)(y1, ROW, r, prepared1, FORM1);
        PASTE(prepare_row_, Y2)(y2, ROW, r, prepared2, FORM2);
        PASTE(prepare_row_, Y3)(y3, ROW, r, prepared3, FORM3);
    }
}
