/* SPDX-License-Identifier: Apache-2.0
 *
 * Two small things that every file of this folder needs: a piece of text that may hold
 * NUL bytes and is owned by someone else, and the growth of an array.
 */
#ifndef XM_PLUGIN_TEXT_SLICE_H
#define XM_PLUGIN_TEXT_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/util/memory.h"

struct xm_slice {
    const char *text; /* not NUL-terminated */
    size_t n;         /* bytes              */
};

static inline struct xm_slice
xm_slice_of(const char *text, size_t n)
{
    struct xm_slice s;
    s.text = text;
    s.n = n;
    return s;
}

static inline bool
xm_slice_equal(struct xm_slice a, struct xm_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.text, b.text, a.n) == 0);
}

static inline bool
xm_slice_starts_with(struct xm_slice s, struct xm_slice prefix)
{
    return s.n >= prefix.n && xm_slice_equal(xm_slice_of(s.text, prefix.n), prefix);
}

/* Makes room for `need` items of `item_bytes` each. Returns the array, moved if it had to
 * grow, and updates *capacity; NULL when memory is exhausted: `items` stays valid then.
 */
static inline void *
xm_grow(void *items, size_t *capacity, size_t need, size_t item_bytes)
{
    if (items && need <= *capacity)
        return items;
    size_t n = *capacity ? *capacity : 16;
    while (n < need && n <= SIZE_MAX / 2)
        n *= 2;
    if (n < need || n > SIZE_MAX / item_bytes)
        return NULL;
    void *grown = xm_realloc(items, n * item_bytes);
    if (grown)
        *capacity = n;
    return grown;
}

#endif
