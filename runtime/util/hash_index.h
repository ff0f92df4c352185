/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds items of an array by a hash of their key: open addressing with linear probing. The caller
 * owns the array and compares the keys:
 *
 *     struct xm_hash_probe p = xm_hash_begin(hash);
 *     while (xm_hash_next(&index, &p))
 *         if (is_equal(items[p.item].key, key))
 *             return &items[p.item];
 *
 * At most half of the slots are in use, so that a probe soon reaches a free slot. A slot keeps 32
 * bits of the hash: growing the index does not need the keys, and a key is compared only if these
 * bits are equal.
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
    uint32_t hash; /* the hash folded to 32 bits        */
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
    uint32_t item; /* index of the item that the last successful xm_hash_next found */
};

/* Begins to visit the items whose hash is `hash`, in no particular order. xm_hash_next finds
 * them. */
static inline struct xm_hash_probe
xm_hash_begin(uint64_t hash)
{
    const uint32_t folded = (uint32_t)(hash ^ hash >> 32);
    const struct xm_hash_probe p = {folded, folded, 0};
    return p;
}

/* Sets p->item to the next item whose hash has the same 32 folded bits: the caller must compare its
 * key. False: there is none. The index must not change between two calls. */
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

/* Makes room for n items in all, so that adding that many cannot fail. False: no memory, or n is
 * above XM_HASH_MOST. */
bool xm_hash_reserve(struct xm_hash_index *index, uint64_t n);
/* Adds an item, an array index below UINT32_MAX, even if an item with an equal key is there. False:
 * no memory; nothing has changed. */
bool xm_hash_add(struct xm_hash_index *index, uint64_t hash, uint32_t item);
/* Removes an item, which must have been added with this hash. */
void xm_hash_remove(struct xm_hash_index *index, uint64_t hash, uint32_t item);
/* Replaces item number `from` by `to` after the caller moved the item in its array. */
void xm_hash_move(struct xm_hash_index *index, uint64_t hash, uint32_t from, uint32_t to);
void xm_hash_clear(struct xm_hash_index *index); /* removes all items; keeps the memory */
void xm_hash_free(struct xm_hash_index *index);

/* FNV-1a of n bytes. `seed`: XM_HASH_SEED, or the hash of the bytes that precede them. */
#define XM_HASH_SEED 0xcbf29ce484222325u
static inline uint64_t
xm_hash_bytes(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++)
        seed = (seed ^ p[i]) * 0x100000001b3u;
    return seed;
}

/* The hash of a number: Fibonacci hashing, a multiplication by 2^64 / the golden ratio. */
static inline uint64_t
xm_hash_number(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15u;
}

#ifdef __cplusplus
}
#endif
#endif
