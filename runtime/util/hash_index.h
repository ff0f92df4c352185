/* SPDX-License-Identifier: Apache-2.0
 *
 * An index by hash of the items of an array: open addressing with linear probing. The caller owns
 * the array and compares keys:
 *
 *     struct xm_hash_probe p = xm_hash_begin(hash);
 *     while (xm_hash_next(&index, &p))
 *         if (is_equal(items[p.item].key, key))
 *             return &items[p.item];
 *
 * At most half of the slots are in use, so a probe ends at a free slot after few others. A slot
 * keeps 32 bits of the hash: growing needs no keys, and keys are only compared if those bits agree.
 */
#ifndef XM_RUNTIME_UTIL_HASH_INDEX_H
#define XM_RUNTIME_UTIL_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_HASH_MOST = 1 << 30 }; /* items */

struct xm_hash_slot {
    uint32_t hash; /* folded to 32 bits                 */
    uint32_t item; /* its number plus 1; 0: a free slot */
};

/* Zero-initialise to use. */
struct xm_hash_index {
    struct xm_hash_slot *slots; /* owned; NULL: none                       */
    uint32_t mask;              /* number of slots, a power of two, less 1 */
    uint32_t n;                 /* items                                   */
};

struct xm_hash_probe {
    uint32_t hash, at;
    uint32_t item; /* of the last xm_hash_next that returned true */
};

/* Begins to visit the items whose hash is `hash`, in no particular order. */
static inline struct xm_hash_probe
xm_hash_begin(uint64_t hash)
{
    const uint32_t folded = (uint32_t)(hash ^ hash >> 32);
    const struct xm_hash_probe p = {folded, folded, 0};
    return p;
}

/* Sets p->item to the next of these items; false: there is none. Items of another hash are among
 * them if its 32 folded bits are the same. The index must not change between two calls. */
static inline bool
xm_hash_next(const struct xm_hash_index *index, struct xm_hash_probe *p)
{
    while (index->slots) {
        const struct xm_hash_slot *s = &index->slots[p->at++ & index->mask];
        if (s->item == 0)
            return false;
        if (s->hash == p->hash) {
            p->item = s->item - 1;
            return true;
        }
    }
    return false;
}

/* Makes room for n items in all, so that adding them cannot fail. False: no memory, or more than
 * XM_HASH_MOST. */
bool xm_hash_reserve(struct xm_hash_index *index, uint64_t n);
/* Adds an item below UINT32_MAX, even if there is one with an equal key. False: no memory; nothing
 * has changed. */
bool xm_hash_add(struct xm_hash_index *index, uint64_t hash, uint32_t item);
/* Removes an item, which must have been added with this hash. */
void xm_hash_remove(struct xm_hash_index *index, uint64_t hash, uint32_t item);
/* The same item has another number from now on. */
void xm_hash_move(struct xm_hash_index *index, uint64_t hash, uint32_t from, uint32_t to);
void xm_hash_clear(struct xm_hash_index *index); /* removes all items; keeps the memory */
void xm_hash_free(struct xm_hash_index *index);

/* FNV-1a. `seed`: XM_HASH_SEED, or the hash of what stands before the bytes. */
#define XM_HASH_SEED 0xcbf29ce484222325u
static inline uint64_t
xm_hash_bytes(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++)
        seed = (seed ^ p[i]) * 0x100000001b3u;
    return seed;
}

/* Of a number: it is multiplied by 2^64 / the golden ratio. */
static inline uint64_t
xm_hash_number(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15u;
}

#ifdef __cplusplus
}
#endif
#endif
