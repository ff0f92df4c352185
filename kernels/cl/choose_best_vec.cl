/* SPDX-License-Identifier: Apache-2.0
 *
 * Does what choose_best_ref does; a work-item computes a span of parts, 16 tokens at a time.
 */
#include "choose.h"
#include "span.h"
#include "vector.h"

/* Adjusts the logits of a part; returns whether one of those was unsound. */
static uint
adjust_part(__global float *logits, __global const struct seen *seen, uint first, uint end,
            __global const struct state *state)
{
    uint unsound = 0;
#if ADJUSTS
    for (uint i = first; i < end && state->adjusts; i += 8) {
        const uint last = min(i + 8, end);
        if (i + 8 <= end && !any(vload16(0, (__global const int *)(seen + i)) != 0))
            continue;
        for (uint k = i; k < last; k++) {
            if (seen[k].count == 0)
                continue;
            unsound |= !(logits[k] < INFINITY);
            adjust(&logits[k], seen[k], state);
        }
    }
#endif
    return unsound;
}

__kernel void
choose_best_vec(__global float *logits, __global struct part *parts,
                __global const struct seen *seen, __global const struct state *state, uint n,
                uint seen_stride)
{
    const uint text = get_global_id(1), n_parts = parts_of(n);
    logits += (ulong)text * n;
    parts += text * n_parts;
    seen += (ulong)text * seen_stride;
    state += text;
    for (uint p = span_begin(n_parts); p < span_end(n_parts); p++) {
        const uint first = p * PART, end = min(first + PART, n);
        uint unsound = adjust_part(logits, seen, first, end, state);
        float16 most = -INFINITY;
        int16 sound = -1;
        uint i = first;
        for (; i + 16 <= end; i += 16) {
            const float16 x = vload16(0, logits + i);
            most = x > most ? x : most;
            sound &= x < INFINITY;
        }
        float largest = max16(most);
        unsound |= !all(sound);
        for (; i < end; i++) {
            largest = logits[i] > largest ? logits[i] : largest;
            unsound |= !(logits[i] < INFINITY);
        }
        for (i = first; i + 1 < end && logits[i] != largest; i++)
            ;
        parts[p].key = key_of(largest, i);
        parts[p].unsound = unsound;
    }
}
