/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/hash_index.h"

#include <string.h>

#include "runtime/util/memory.h"

enum { LEAST_SLOTS = 16 };

/* Puts an entry into the first free slot of its probe sequence. */
static void
put(struct xm_hash_index *index, struct xm_hash_slot slot)
{
    uint32_t at = slot.hash & index->mask;
    while (index->slots[at].item)
        at = (at + 1) & index->mask;
    index->slots[at] = slot;
    index->n++;
}

bool
xm_hash_reserve(struct xm_hash_index *index, uint64_t n)
{
    uint64_t n_slots = index->slots ? (uint64_t)index->mask + 1 : 0;
    if (n > XM_HASH_MOST)
        return false;
    if (2 * n <= n_slots)
        return true;
    const uint64_t n_old = n_slots;
    n_slots = n_slots ? n_slots : LEAST_SLOTS;
    while (n_slots < 2 * n)
        n_slots *= 2;
    struct xm_hash_index grown = {.mask = (uint32_t)(n_slots - 1)};
    grown.slots = xm_calloc(n_slots, sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    for (uint64_t i = 0; i < n_old; i++) {
        if (index->slots[i].item)
            put(&grown, index->slots[i]);
    }
    xm_free(index->slots);
    *index = grown;
    return true;
}

bool
xm_hash_add(struct xm_hash_index *index, uint64_t hash, uint32_t item)
{
    if (!xm_hash_reserve(index, (uint64_t)index->n + 1))
        return false;
    put(index, (struct xm_hash_slot){xm_hash_begin(hash).hash, item + 1});
    return true;
}

/* Finds the slot of an item that is in the index. */
static uint32_t
slot_of(const struct xm_hash_index *index, uint64_t hash, uint32_t item)
{
    uint32_t at = xm_hash_begin(hash).hash & index->mask;
    while (index->slots[at].item != item + 1)
        at = (at + 1) & index->mask;
    return at;
}

void
xm_hash_move(struct xm_hash_index *index, uint64_t hash, uint32_t from, uint32_t to)
{
    index->slots[slot_of(index, hash, from)].item = to + 1;
}

/* Removes an item. Entries after the freed slot that a probe would no longer reach move into it. */
void
xm_hash_remove(struct xm_hash_index *index, uint64_t hash, uint32_t item)
{
    struct xm_hash_slot *slots = index->slots;
    uint32_t hole = slot_of(index, hash, item);
    for (uint32_t at = (hole + 1) & index->mask; slots[at].item;
         at = (at + 1) & index->mask) {
        const uint32_t from_home = (at - slots[at].hash) & index->mask;
        if (from_home >= ((at - hole) & index->mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = (struct xm_hash_slot){0};
    index->n--;
}

void
xm_hash_clear(struct xm_hash_index *index)
{
    if (index->slots)
        memset(index->slots, 0, ((size_t)index->mask + 1) * sizeof(*index->slots));
    index->n = 0;
}

void
xm_hash_free(struct xm_hash_index *index)
{
    xm_free(index->slots);
    *index = (struct xm_hash_index){0};
}
