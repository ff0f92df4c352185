/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/open_engines.h"

#include "runtime/util/memory.h"

/* An open engine, with the device's index and the config with which it was opened. */
struct xm_open_engine {
    struct xm_open_engine *next;
    uint32_t index;
    struct xm_config config;
    struct xm_engine *engine; /* referenced */
};

void
xm_open_engines_init(struct xm_open_engines *l, xm_engine_open_fn open,
                     const struct xm_shared_cl *share)
{
    pthread_mutex_init(&l->lock, NULL);
    l->open = open;
    l->share = share ? *share : (struct xm_shared_cl){0};
    l->first = NULL;
}

/* Removes the entry that *link points to from the list, and frees it. */
static void
drop(struct xm_open_engine **link)
{
    struct xm_open_engine *e = *link;
    *link = e->next;
    xm_engine_unref(e->engine);
    xm_free(e);
}

/* Removes the engines whose device is lost. The caller holds the lock. */
static void
drop_lost(struct xm_open_engines *l)
{
    struct xm_open_engine **link = &l->first;
    while (*link) {
        if (xm_engine_is_lost((*link)->engine))
            drop(link);
        else
            link = &(*link)->next;
    }
}

/* Returns the OpenCL context for a new engine of the device: the list's, or else that of an open
 * engine of the device. */
static struct xm_shared_cl
place_for(const struct xm_open_engines *l, uint32_t index)
{
    struct xm_shared_cl place = l->share;
    for (const struct xm_open_engine *e = l->first; e && !place.context; e = e->next) {
        if (e->index == index)
            place.context = xm_engine_cl_context(e->engine);
    }
    return place;
}

/* Opens an engine of the device and adds it to the list. The caller holds the lock. */
static enum xm_status
add(struct xm_open_engines *l, uint32_t index, const struct xm_config *config,
    struct xm_open_engine **out, struct xm_error *err)
{
    struct xm_open_engine *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return xm_no_memory(err, "an engine");
    const struct xm_shared_cl place = place_for(l, index);
    enum xm_status s =
        l->open(index, config, place.context ? &place : NULL, &e->engine, err);
    if (s != XM_OK) {
        xm_free(e);
        return s;
    }
    e->index = index;
    e->config = *config;
    e->next = l->first;
    l->first = *out = e;
    return XM_OK;
}

enum xm_status
xm_open_engines_get(struct xm_open_engines *l, uint32_t index,
                    const struct xm_config *config, struct xm_engine **out,
                    struct xm_error *err)
{
    enum xm_status s = XM_OK;
    pthread_mutex_lock(&l->lock);
    drop_lost(l);
    struct xm_open_engine *e = l->first;
    while (e && (e->index != index || !xm_config_same_engine(&e->config, config)))
        e = e->next;
    if (!e)
        s = add(l, index, config, &e, err);
    if (s == XM_OK) {
        xm_engine_ref(e->engine);
        *out = e->engine;
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

void
xm_open_engines_memory(struct xm_open_engines *l, uint32_t index,
                       struct xm_memory_stats *sum)
{
    struct xm_memory_stats m;
    *sum = (struct xm_memory_stats){0};
    pthread_mutex_lock(&l->lock);
    drop_lost(l);
    for (const struct xm_open_engine *e = l->first; e; e = e->next) {
        if (e->index != index)
            continue;
        xm_engine_memory_stats(e->engine, &m);
        for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++)
            sum->now[k] += m.now[k];
    }
    pthread_mutex_unlock(&l->lock);
}

void
xm_open_engines_free(struct xm_open_engines *l)
{
    while (l->first)
        drop(&l->first);
    pthread_mutex_destroy(&l->lock);
}
