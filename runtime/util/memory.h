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

/* As malloc, calloc, realloc and free, but memory from this allocator must be freed by it. NULL:
 * out of memory. Any thread. */
void *xm_malloc(size_t bytes);
void *xm_calloc(size_t n, size_t bytes); /* zeroed; NULL when n * bytes overflows */
void *xm_realloc(void *p, size_t bytes); /* on failure `p` stays valid            */
void xm_free(void *p);
char *xm_strdup(const char *s); /* free with xm_free */

/* Test hook: the n-th allocation from now on fails (1: the next one), once; 0: none.
 * xm_fail_allocation_seen() tells whether it has failed. Not thread-safe. */
void xm_fail_allocation(uint64_t n);
bool xm_fail_allocation_seen(void);

/* Sets *out to a * b, or to a + b; false: that overflows. */
bool xm_mul_size(uint64_t a, uint64_t b, uint64_t *out);
bool xm_add_size(uint64_t a, uint64_t b, uint64_t *out);

/* Grows `items`, an array in memory of xm_malloc or NULL, to room for at least `need` items of
 * `item_bytes` each. Returns the array, which may have moved, and updates *capacity. NULL: no
 * memory; `items` stays valid. */
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

/* An arena: zeroed allocations that are freed together, never one by one. Zero-initialise to
 * use. */
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
