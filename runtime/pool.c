/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pool.h"

#include <inttypes.h>
#include <pthread.h>

#include "runtime/util/memory.h"

enum {
    /* sizes are rounded up to a multiple, so that similar requests can share a buffer */
    GRANULE = 4096,
    /* an idle buffer is at most about this many times larger than the request */
    MAX_SLACK = 4
};

struct entry {
    struct entry *next;
    struct xm_buffer *buffer;
    enum xm_pool_use use;
    bool lent;
};

struct xm_pool {
    struct xm_engine *engine;
    uint64_t budget;
    pthread_mutex_t lock; /* protects the members below */
    struct entry *entries;
    struct xm_pool_stats stats;
};

enum xm_status
xm_pool_create(struct xm_engine *engine, uint64_t budget_bytes, struct xm_pool **out,
               struct xm_error *err)
{
    *out = NULL;
    struct xm_pool *pool = xm_calloc(1, sizeof(*pool));
    if (!pool || pthread_mutex_init(&pool->lock, NULL)) {
        xm_free(pool);
        return xm_no_memory(err, "a pool of device memory");
    }
    pool->budget = budget_bytes ? budget_bytes : UINT64_MAX;
    pool->engine = engine;
    xm_engine_ref(engine);
    *out = pool;
    return XM_OK;
}

/* Unlinks *link and frees its buffer. */
static void
drop(struct xm_pool *pool, struct entry **link)
{
    struct entry *e = *link;
    *link = e->next;
    pool->stats.now_bytes -= xm_buffer_bytes(e->buffer);
    xm_buffer_unref(e->buffer);
    xm_free(e);
}

static void
drop_idle(struct xm_pool *pool)
{
    for (struct entry **link = &pool->entries; *link;) {
        if ((*link)->lent)
            link = &(*link)->next;
        else
            drop(pool, link);
    }
    pool->stats.idle_bytes = 0;
}

void
xm_pool_destroy(struct xm_pool *pool)
{
    if (!pool)
        return;
    while (pool->entries)
        drop(pool, &pool->entries);
    pthread_mutex_destroy(&pool->lock);
    xm_engine_unref(pool->engine);
    xm_free(pool);
}

/* The smallest idle buffer that is large enough and not much too large; NULL: none. */
static struct entry *
find_idle(struct xm_pool *pool, uint64_t bytes)
{
    struct entry *best = NULL;
    for (struct entry *e = pool->entries; e; e = e->next) {
        uint64_t size = xm_buffer_bytes(e->buffer);
        if (e->lent || size < bytes || size / MAX_SLACK > bytes)
            continue;
        if (!best || size < xm_buffer_bytes(best->buffer))
            best = e;
    }
    return best;
}

static enum xm_status
allocate(struct xm_pool *pool, uint64_t bytes, enum xm_pool_use use, struct entry *e,
         struct xm_error *err)
{
    if (bytes > pool->budget || pool->stats.now_bytes > pool->budget - bytes)
        drop_idle(pool);
    uint64_t in_use = pool->stats.now_bytes;
    if (bytes > pool->budget || in_use > pool->budget - bytes)
        return xm_fail(err, XM_NO_MEMORY,
                       "scratch memory of %" PRIu64 " bytes does not fit: %" PRIu64
                       " of the budget of %" PRIu64 " bytes are in use, %" PRIu64
                       " are free",
                       bytes, in_use, pool->budget, pool->budget - in_use);
    enum xm_buffer_use buffer_use = use == XM_POOL_PRIVATE ? XM_USE_HOST : XM_USE_DEVICE;
    struct xm_error first = {XM_OK, {0}};
    if (xm_buffer_create(pool->engine, buffer_use, bytes, &e->buffer, &first) == XM_OK)
        return XM_OK;
    if (first.status != XM_NO_MEMORY || pool->stats.idle_bytes == 0)
        return xm_fail(err, first.status, "%s", first.text);
    drop_idle(pool); /* idle buffers may hold the memory that the driver lacks */
    return xm_buffer_create(pool->engine, buffer_use, bytes, &e->buffer, err);
}

static enum xm_status
add_entry(struct xm_pool *pool, uint64_t bytes, enum xm_pool_use use, struct entry **out,
          struct xm_error *err)
{
    struct entry *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return xm_no_memory(err, "an entry of the pool");
    enum xm_status status = allocate(pool, bytes, use, e, err);
    if (status != XM_OK) {
        xm_free(e);
        return status;
    }
    e->use = use;
    e->next = pool->entries;
    pool->entries = e;
    pool->stats.now_bytes += bytes;
    if (pool->stats.now_bytes > pool->stats.peak_bytes)
        pool->stats.peak_bytes = pool->stats.now_bytes;
    *out = e;
    return XM_OK;
}

enum xm_status
xm_pool_acquire(struct xm_pool *pool, uint64_t bytes, enum xm_pool_use use,
                struct xm_buffer **out, struct xm_error *err)
{
    *out = NULL;
    if (bytes == 0 || bytes > UINT64_MAX - GRANULE)
        return xm_fail(err, XM_INVALID,
                       "scratch memory of %" PRIu64 " bytes was requested", bytes);
    bytes = xm_align_up(bytes, GRANULE);
    enum xm_status status = XM_OK;
    pthread_mutex_lock(&pool->lock);
    struct entry *e = use == XM_POOL_SHARED ? find_idle(pool, bytes) : NULL;
    if (e) {
        pool->stats.reused++;
        pool->stats.idle_bytes -= xm_buffer_bytes(e->buffer);
    } else {
        status = add_entry(pool, bytes, use, &e, err);
    }
    if (status == XM_OK) {
        pool->stats.acquired++;
        e->lent = true;
        *out = e->buffer;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void
xm_pool_release(struct xm_pool *pool, struct xm_buffer *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&pool->lock);
    struct entry **link = &pool->entries;
    while (*link && (*link)->buffer != b)
        link = &(*link)->next;
    if (*link && (*link)->use == XM_POOL_PRIVATE) {
        drop(pool, link);
    } else if (*link && (*link)->lent) {
        (*link)->lent = false;
        pool->stats.idle_bytes += xm_buffer_bytes(b);
    }
    pthread_mutex_unlock(&pool->lock);
}

void
xm_pool_trim(struct xm_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    drop_idle(pool);
    pthread_mutex_unlock(&pool->lock);
}

void
xm_pool_get_stats(struct xm_pool *pool, struct xm_pool_stats *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->stats;
    pthread_mutex_unlock(&pool->lock);
}
