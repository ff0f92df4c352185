/* SPDX-License-Identifier: Apache-2.0
 *
 *     y = act(gate) * up
 *
 * A work-item computes one element; ACT numbers the activation.
 */
#include "activation.h"
#include "types.h"

__kernel void
glu_ref(__global const STORAGE(SRC) *gate, __global const STORAGE(SRC) *up,
        __global STORAGE(SRC) *y, ulong n)
{
    const ulong i = get_global_id(0);
    STORE(SRC, y, i, gated(LOAD(SRC, gate, i), LOAD(SRC, up, i), 1.0f));
}
