/* SPDX-License-Identifier: Apache-2.0
 *
 *     y[t,k] = w[ids[t]][k]
 *
 * A work-item computes a span of tokens; scale and zero point are read once for each group. An id
 * out of range gives zeros.
 */
#include "span.h"
#include "weights.h"

#ifndef IDS
#define IDS i64
#endif

static void
copy_row(const struct weight *w, ulong row, __global STORAGE(DST) *y)
{
#if BLOCKS
    uint k = 0;
    for (; k + 16 <= w->k_count; k += 16)
        STORE16(DST, y, k, weights_at(w, row, k));
    for (; k < w->k_count; k++)
        STORE(DST, y, k, weight_at(w, row, k));
#else
    const uint group = group_size(w);
    for (uint g = 0; g < group_count(w); g++) {
        const float s = weight_scale(w, row, g), z = weight_zero_point(w, row, g);
        for (uint k = g * group; k < (g + 1) * group; k++)
            STORE(DST, y, k, (BYTES(WEI, w->data, row_begin(w, row) + k) - z) * s);
    }
#endif
}

__kernel void
embedding_vec(__global const STORAGE(IDS) *ids, WEIGHT_PARAMETERS(w),
              __global STORAGE(DST) *y, ulong tokens, uint rows, uint cols)
{
    const struct weight w = WEIGHT(w, cols, 0);
    for (ulong t = span_begin(tokens); t < span_end(tokens); t++) {
        const long n = ids[t];
        if (n >= 0 && n < rows) {
            copy_row(&w, stored_row(&w, 0, n), y + t * cols);
            continue;
        }
        for (uint k = 0; k < cols; k++)
            STORE(DST, y, t * cols + k, 0.0f);
    }
}
