/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps routed experts to slots of the layer's cache; evicts the least recently used experts.
 *
 *     slot_ids[i] = the slot of expert ids[i]                       for all i < n
 *     slot_ids[i] = ids[i] if ids[i] < 0: no expert of this device
 *     moves[j]    = (expert, slot): what has to be fetched; (-1, -1) behind the last
 *
 * slot_of[e] is -1 while expert e is not in the cache, expert_in[s] while slot s is empty; last_use
 * counts calls. counts: calls, hits, misses; an id that comes twice is fetched once. There are as
 * many slots as different experts in the ids, so that nothing that this call needs is evicted. One
 * work-item does it all.
 */
static uint
oldest_slot(__global const ulong *last_use, uint slots)
{
    uint oldest = 0;
    for (uint s = 1; s < slots; s++)
        oldest = last_use[s] < last_use[oldest] ? s : oldest;
    return oldest;
}

__kernel void
moe_cache_lookup_ref(__global const int *ids, __global int *slot_of,
                     __global int *expert_in, __global ulong *last_use,
                     __global ulong *counts, __global int *slot_ids, __global int2 *moves,
                     uint n, uint slots)
{
    const ulong now = counts[0] + 1;
    uint misses = 0, absent = 0;
    for (uint i = 0; i < n; i++) {
        if (ids[i] >= 0 && slot_of[ids[i]] >= 0)
            last_use[slot_of[ids[i]]] = now;
    }
    for (uint i = 0; i < n; i++) {
        const int expert = ids[i];
        if (expert < 0) {
            slot_ids[i] = expert;
            absent++;
            continue;
        }
        if (slot_of[expert] < 0) {
            const uint slot = oldest_slot(last_use, slots);
            if (expert_in[slot] >= 0)
                slot_of[expert_in[slot]] = -1;
            expert_in[slot] = expert;
            slot_of[expert] = (int)slot;
            last_use[slot] = now;
            moves[misses++] = (int2)(expert, (int)slot);
        }
        slot_ids[i] = slot_of[expert];
    }
    counts[0] = now;
    counts[1] += n - misses - absent;
    counts[2] += misses;
    for (uint i = misses; i < min(n, slots); i++)
        moves[i] = (int2)(-1, -1);
}
