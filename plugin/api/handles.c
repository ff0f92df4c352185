/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of live handles of the process. It holds no memory while there are no handles, so that a
 * program that frees all handles has no leak.
 */
#include <pthread.h>
#include <stdint.h>

#include "runtime/util/hash_index.h"
#include "runtime/util/memory.h"

#include "plugin/api/handles.h"

struct entry {
    const void *handle;
    enum xm_api_kind kind;
    uint32_t count; /* number of equal handles */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t n_entries, capacity;
static struct xm_hash_index by_address; /* finds entries by address */

static uint64_t
hash_of(const void *handle)
{
    return xm_hash_number((uintptr_t)handle);
}

static struct entry *
find_entry(const void *handle, enum xm_api_kind kind)
{
    struct xm_hash_probe p = xm_hash_begin(hash_of(handle));
    while (xm_hash_next(&by_address, &p)) {
        struct entry *e = &entries[p.item];
        if (e->handle == handle && e->kind == kind)
            return e;
    }
    return NULL;
}

static struct entry *
add_entry(const void *handle, enum xm_api_kind kind)
{
    struct entry *grown = xm_grow(entries, &capacity, n_entries + 1, sizeof(*grown));
    entries = grown ? grown : entries;
    if (!grown || !xm_hash_add(&by_address, hash_of(handle), (uint32_t)n_entries))
        return NULL;
    entries[n_entries] = (struct entry){handle, kind, 1};
    return &entries[n_entries++];
}

/* Moves the last entry into its place. */
static void
erase(struct entry *e)
{
    const uint32_t last = (uint32_t)--n_entries, at = (uint32_t)(e - entries);
    xm_hash_remove(&by_address, hash_of(e->handle), at);
    if (at != last) {
        *e = entries[last];
        xm_hash_move(&by_address, hash_of(e->handle), last, at);
    }
    if (n_entries == 0) {
        xm_hash_free(&by_address);
        xm_free(entries);
        entries = NULL;
        capacity = 0;
    }
}

bool
xm_api_handle_add(const void *handle, enum xm_api_kind kind)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find_entry(handle, kind);
    if (e)
        e->count++;
    else
        e = add_entry(handle, kind);
    pthread_mutex_unlock(&lock);
    return e != NULL;
}

bool
xm_api_handle_drop(const void *handle, enum xm_api_kind kind)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find_entry(handle, kind);
    if (e && --e->count == 0)
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
