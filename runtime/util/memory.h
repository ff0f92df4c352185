/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory: checked sizes, allocation that tests can make fail, and the arena.
 *
 * Everything in xemoe allocates through xm_malloc/xm_calloc/xm_realloc/xm_free, so that a
 * test can fail the n-th allocation. Sizes that come from a file are multiplied with
 * xm_mul_size only.
 */
#ifndef XM_RUNTIME_UTIL_MEMORY_H
#define XM_RUNTIME_UTIL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in C, but memory comes from and goes to this allocator only. NULL: out of memory. Any
 * thread. */
void *xm_malloc(size_t bytes);
void *xm_calloc(size_t n, size_t bytes); /* zeroed; NULL when n * bytes overflows */
void *xm_realloc(void *p, size_t bytes); /* on failure `p` stays valid            */
void xm_free(void *p);
char *xm_strdup(const char *s); /* free with xm_free */

/* Test hook: the n-th allocation from now on fails (1 = the next one), once; 0 = none.
 * xm_fail_allocation_seen() says whether it has. Not thread-safe; tests only. */
void xm_fail_allocation(uint64_t n);
bool xm_fail_allocation_seen(void);

/* *out = a * b (a + b) unless that overflows; returns whether it is valid. */
bool xm_mul_size(uint64_t a, uint64_t b, uint64_t *out);
bool xm_add_size(uint64_t a, uint64_t b, uint64_t *out);

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

static inline uint64_t
xm_align_up(uint64_t n, uint64_t alignment)
{
    return (n + alignment - 1) / alignment * alignment;
}

/* An arena: zeroed allocations, freed together, never singly. Zero-initialise to use. */
struct xm_arena {
    struct xm_arena_block *last; /* newest block; older ones are chained behind it */
    size_t bytes;                /* bytes handed out in all                         */
};

void *xm_arena_alloc(struct xm_arena *arena, size_t bytes); /* NULL: out of memory */
char *xm_arena_strdup(struct xm_arena *arena, const char *s);
char *xm_arena_strndup(struct xm_arena *arena, const char *s, size_t n);
char *xm_arena_printf(struct xm_arena *arena, const char *fmt, ...) XM_PRINTF(2, 3);
void xm_arena_free(struct xm_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
