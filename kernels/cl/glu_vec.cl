/* SPDX-License-Identifier: Apache-2.0
 *
 *     y = act(gate) * up
 *
 * A work-item computes a span of 16-element blocks; ACT numbers the activation.
 */
#define REAL float16
#include "activation.h"
#include "span.h"
#include "types.h"

__kernel void
glu_vec(__global const STORAGE(SRC) *gate, __global const STORAGE(SRC) *up,
        __global STORAGE(SRC) *y, ulong n)
{
    const ulong blocks = (n + 15) / 16;
    for (ulong b = span_begin(blocks); b < span_end(blocks); b++) {
        const ulong i = b * 16, count = min(n - i, (ulong)16);
        if (count == 16) {
            STORE16(SRC, y, i, gated(LOAD16(SRC, gate, i), LOAD16(SRC, up, i), 1.0f));
            continue;
        }
        float g[16] = {0}, u[16] = {0};
        for (ulong j = 0; j < count; j++) {
            g[j] = LOAD(SRC, gate, i + j);
            u[j] = LOAD(SRC, up, i + j);
        }
        vstore16(gated(vload16(0, g), vload16(0, u), 1.0f), 0, g);
        for (ulong j = 0; j < count; j++)
            STORE(SRC, y, i + j, g[j]);
    }
}
