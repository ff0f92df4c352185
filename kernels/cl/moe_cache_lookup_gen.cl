/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps routed experts to slots of the layer's cache by one work-group of ITEMS; operands, order and
 * ties as in moe_cache_lookup_ref. All work-items look for the slot to evict, one
 * writes.
 */
#include "group.h"

static uint
oldest_slot(__global const ulong *last_use, uint slots, __local ulong *uses,
            __local uint *found)
{
    const uint me = get_local_id(0);
    ulong least = ULONG_MAX;
    uint oldest = slots;
    for (uint s = me; s < slots; s += ITEMS) {
        if (last_use[s] < least) {
            least = last_use[s];
            oldest = s;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uses[me] = least;
    found[me] = oldest;
    for (uint left = ITEMS / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < left && (uses[me + left] < uses[me] || (uses[me + left] == uses[me] &&
                                                         found[me + left] < found[me]))) {
            uses[me] = uses[me + left];
            found[me] = found[me + left];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return found[0];
}

__kernel void
moe_cache_lookup_gen(__global const int *ids, __global int *slot_of,
                     __global int *expert_in, __global ulong *last_use,
                     __global ulong *counts, __global int *slot_ids, __global int2 *moves,
                     uint n, uint slots)
{
    __local ulong uses[ITEMS];
    __local uint found[ITEMS];
    const uint me = get_local_id(0);
    const ulong now = counts[0] + 1;
    uint misses = 0, absent = 0;
    for (uint i = me; i < n; i += ITEMS) {
        if (ids[i] >= 0 && slot_of[ids[i]] >= 0)
            last_use[slot_of[ids[i]]] = now;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (uint i = 0; i < n; i++) {
        const int expert = ids[i];
        int slot = expert < 0 ? 0 : slot_of[expert];
        absent += expert < 0;
        if (slot < 0) {
            slot = (int)oldest_slot(last_use, slots, uses, found);
            if (me == 0) {
                if (expert_in[slot] >= 0)
                    slot_of[expert_in[slot]] = -1;
                expert_in[slot] = expert;
                slot_of[expert] = slot;
                last_use[slot] = now;
                moves[misses] = (int2)(expert, slot);
            }
            misses++;
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
        if (me == 0)
            slot_ids[i] = expert < 0 ? expert : slot;
    }
    for (uint i = misses + me; i < min(n, slots); i += ITEMS)
        moves[i] = (int2)(-1, -1);
    if (me > 0)
        return;
    counts[0] = now;
    counts[1] += n - misses - absent;
    counts[2] += misses;
}
