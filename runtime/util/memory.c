/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"

enum { ARENA_BLOCK = 64 * 1024, ARENA_ALIGN = 16 };

struct xm_arena_block {
    struct xm_arena_block *before;
    size_t used, size; /* bytes of data[] */
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

static _Atomic uint64_t fail_countdown; /* allocations until one fails; 0: none */
static atomic_bool fail_seen;

void
xm_fail_allocation(uint64_t n)
{
    atomic_store(&fail_seen, false);
    atomic_store(&fail_countdown, n);
}

bool
xm_fail_allocation_seen(void)
{
    return atomic_load(&fail_seen);
}

static bool
must_fail(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
        return false;
    if (atomic_fetch_sub(&fail_countdown, 1) != 1)
        return false;
    atomic_store(&fail_seen, true);
    return true;
}

void *
xm_malloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *
xm_calloc(size_t n, size_t bytes)
{
    return must_fail() ? NULL : calloc(n ? n : 1, bytes ? bytes : 1);
}

void *
xm_realloc(void *p, size_t bytes)
{
    return must_fail() ? NULL : realloc(p, bytes ? bytes : 1);
}

void
xm_free(void *p)
{
    free(p);
}

char *
xm_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = xm_malloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

bool
xm_mul_size(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a != 0 && b > UINT64_MAX / a)
        return false;
    *out = a * b;
    return true;
}

bool
xm_add_size(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b > UINT64_MAX - a)
        return false;
    *out = a + b;
    return true;
}

void *
xm_arena_alloc(struct xm_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    struct xm_arena_block *b = arena->last;
    if (!b || b->size - b->used < bytes) {
        size_t size = bytes > ARENA_BLOCK ? bytes : ARENA_BLOCK;
        b = xm_calloc(1, sizeof(*b) + size);
        if (!b)
            return NULL;
        b->size = size;
        b->before = arena->last;
        arena->last = b;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    arena->bytes += bytes;
    return p;
}

char *
xm_arena_strndup(struct xm_arena *arena, const char *s, size_t n)
{
    char *copy = xm_arena_alloc(arena, n + 1);
    return copy ? memcpy(copy, s, n) : NULL;
}

char *
xm_arena_strdup(struct xm_arena *arena, const char *s)
{
    return xm_arena_strndup(arena, s, strlen(s));
}

char *
xm_arena_printf(struct xm_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = xm_print_v(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = n < 0 ? NULL : xm_arena_alloc(arena, (size_t)n + 1);
    if (!s)
        return NULL;
    va_start(ap, fmt);
    xm_print_v(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

void
xm_arena_free(struct xm_arena *arena)
{
    while (arena->last) {
        struct xm_arena_block *b = arena->last;
        arena->last = b->before;
        xm_free(b);
    }
    arena->bytes = 0;
}
