/* SPDX-License-Identifier: Apache-2.0
 *
 * One set for the process, hashed by address with linear probing. It has no memory while
 * there are no handles, so nothing of it is left at the end of a program that frees all.
 */
#include <pthread.h>
#include <stdint.h>

#include "runtime/util/memory.h"

#include "plugin/api/handles.h"

struct entry {
    const void *handle; /* NULL: free */
    enum xm_api_kind kind;
    uint32_t n; /* handles */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *table;
static size_t used, size; /* entries; `size` is a power of two, or 0 */

static size_t
home_of(const void *handle)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) & (size - 1);
}

/* Where it is, or the free place where it would be. */
static size_t
place_of(const void *handle)
{
    size_t i = home_of(handle);
    while (table[i].handle && table[i].handle != handle)
        i = (i + 1) & (size - 1);
    return i;
}

static struct entry *
find_entry(const void *handle, enum xm_api_kind kind)
{
    struct entry *e = handle && size ? &table[place_of(handle)] : NULL;
    return e && e->handle && e->kind == kind ? e : NULL;
}

/* A third of the table stays free. */
static bool
has_room(void)
{
    enum { FIRST = 64 };
    if (3 * (used + 1) <= 2 * size)
        return true;
    struct entry *old = table;
    const size_t old_size = size, new_size = size ? 2 * size : FIRST;
    struct entry *grown = xm_calloc(new_size, sizeof(*grown));
    if (!grown)
        return false;
    table = grown;
    size = new_size;
    for (size_t i = 0; i < old_size; i++) {
        if (old[i].handle)
            table[place_of(old[i].handle)] = old[i];
    }
    xm_free(old);
    return true;
}

/* Those that came behind it because its place was taken move up. */
static void
erase(struct entry *e)
{
    size_t hole = (size_t)(e - table);
    for (size_t i = hole;;) {
        i = (i + 1) & (size - 1);
        if (!table[i].handle)
            break;
        const size_t from_home = (i - home_of(table[i].handle)) & (size - 1);
        if (from_home >= ((i - hole) & (size - 1))) {
            table[hole] = table[i];
            hole = i;
        }
    }
    table[hole] = (struct entry){0};
    if (--used == 0) {
        xm_free(table);
        table = NULL;
        size = 0;
    }
}

bool
xm_api_handle_add(const void *handle, enum xm_api_kind kind)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find_entry(handle, kind);
    if (e) {
        e->n++;
    } else if (has_room()) {
        e = &table[place_of(handle)];
        *e = (struct entry){handle, kind, 1};
        used++;
    }
    pthread_mutex_unlock(&lock);
    return e != NULL;
}

bool
xm_api_handle_drop(const void *handle, enum xm_api_kind kind)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find_entry(handle, kind);
    if (e && --e->n == 0)
        erase(e);
    pthread_mutex_unlock(&lock);
    return e != NULL;
}

bool
xm_api_is(const void *handle, enum xm_api_kind kind)
{
    pthread_mutex_lock(&lock);
    const bool is = find_entry(handle, kind) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}
