/* SPDX-License-Identifier: Apache-2.0
 *
 * Does what choose_best_ref does; a work-group of ITEMS computes one part.
 */
#include "choose.h"

#ifndef ITEMS
#define ITEMS 64 /* a power of two; the launch's local size */
#endif

__kernel void
choose_best_gen(__global float *logits, __global struct part *parts,
                __global const struct seen *seen, __global const struct state *state, uint n,
                uint seen_stride)
{
    __local ulong keys[ITEMS];
    __local uint unsound[ITEMS];
    const uint me = get_local_id(0), p = get_group_id(0), end = min((p + 1) * PART, n);
    const uint text = get_group_id(1);
    ulong best = 0;
    uint bad = 0;
    logits += (ulong)text * n;
    parts += text * parts_of(n);
    seen += (ulong)text * seen_stride;
    state += text;
    for (uint i = p * PART + me; i < end; i += ITEMS) {
        float logit = logits[i];
        bad += !(logit < INFINITY);
#if ADJUSTS
        if (state->adjusts && seen[i].count)
            logit = adjust(&logits[i], seen[i], state);
#endif
        best = max(best, key_of(logit, i));
    }
    keys[me] = best;
    unsound[me] = bad;
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < left) {
            keys[me] = max(keys[me], keys[me + left]);
            unsound[me] += unsound[me + left];
        }
    }
    if (me == 0) {
        parts[p].key = keys[0];
        parts[p].unsound = unsound[0];
    }
}
