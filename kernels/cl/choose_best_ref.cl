/* SPDX-License-Identifier: Apache-2.0
 *
 *     parts[p] = the largest key of tokens [p PART, (p + 1) PART), and whether logits are unsound
 *
 * of each text's row of logits. A work-item computes one part. Before that, it adjusts the logits
 * of tokens that have been seen, in place.
 */
#include "choose.h"

__kernel void
choose_best_ref(__global float *logits, __global struct part *parts,
                __global const struct seen *seen, __global const struct state *state, uint n,
                uint seen_stride)
{
    const uint p = get_global_id(0), end = min((p + 1) * PART, n);
    const uint text = get_global_id(1);
    struct part best = {0, 0};
    logits += (ulong)text * n;
    parts += text * parts_of(n);
    seen += (ulong)text * seen_stride;
    state += text;
    for (uint i = p * PART; i < end; i++) {
        best.unsound += !(logits[i] < INFINITY);
#if ADJUSTS
        if (state->adjusts && seen[i].count)
            adjust(&logits[i], seen[i], state);
#endif
        best.key = max(best.key, key_of(logits[i], i));
    }
    parts[p] = best;
}
