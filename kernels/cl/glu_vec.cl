/* SPDX-License-Identifier: Apache-2.0
 *
 *     y = act(gate) * up
 *
 * A work-item makes a span of 16-element blocks; the last block is done one by one. ACT
 * numbers the activation as in activation.h.
 */
#include "activation.h"
#include "span.h"
#include "types.h"

#ifndef SRC
#define SRC f32 /* of all operands */
#endif

static float16
activate16(float16 x)
{
#if ACT == 0
    return x / (1.0f + exp(-x));
#elif ACT == 1
    return 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)));
#else
    return 0.5f * x * (1.0f + erf(x * 0.7071067811865476f));
#endif
}

__kernel void
glu_vec(__global const STORAGE(SRC) *gate, __global const STORAGE(SRC) *up,
        __global STORAGE(SRC) *y, ulong n)
{
    const ulong blocks = (n + 15) / 16;
    for (ulong b = span_begin(blocks); b < span_end(blocks); b++) {
        ulong i = b * 16;
        if (i + 16 <= n) {
            const float16 g = LOAD16(SRC, gate, i);
            STORE16(SRC, y, i, activate16(g) * LOAD16(SRC, up, i));
            continue;
        }
        for (; i < n; i++)
            STORE(SRC, y, i, gated(LOAD(SRC, gate, i), LOAD(SRC, up, i), 1.0f));
    }
}
