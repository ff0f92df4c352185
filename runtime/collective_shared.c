/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that are threads of one process: they read each other's bytes where they lie.
 */
#include <pthread.h>

#include "runtime/collective.h"
#include "runtime/util/memory.h"

struct member {
    struct xm_collective base; /* first */
    struct xm_shared_group *group;
};

struct xm_shared_group {
    uint32_t ranks;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t met;
    uint32_t waiting; /* ranks that wait for the others   */
    uint64_t meeting; /* counts how often all have come   */
    bool is_left;
    struct xm_error why; /* of the first that has left */
    struct xm_bytes shown[XM_MOST_RANKS];
    struct member member[XM_MOST_RANKS];
};

/* The lock is held. A meeting that took place counts, whoever has left since. */
static enum xm_status
meet(struct xm_shared_group *g, struct xm_error *err)
{
    const uint64_t meeting = g->meeting;
    if (!g->is_left && ++g->waiting == g->ranks) {
        g->waiting = 0;
        g->meeting++;
        pthread_cond_broadcast(&g->met);
    }
    while (g->meeting == meeting && !g->is_left)
        pthread_cond_wait(&g->met, &g->lock);
    return g->meeting != meeting ? XM_OK : xm_fail(err, g->why.status, "%s", g->why.text);
}

static enum xm_status
show(struct xm_collective *c, struct xm_bytes mine, struct xm_bytes *all,
     struct xm_error *err)
{
    struct xm_shared_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    g->shown[c->rank] = mine;
    const enum xm_status s = meet(g, err);
    for (uint32_t r = 0; r < g->ranks && s == XM_OK; r++)
        all[r] = g->shown[r];
    pthread_mutex_unlock(&g->lock);
    return s;
}

static enum xm_status
done(struct xm_collective *c, struct xm_error *err)
{
    struct xm_shared_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    const enum xm_status s = meet(g, err);
    pthread_mutex_unlock(&g->lock);
    return s;
}

static void
leave(struct xm_collective *c, const struct xm_error *why)
{
    struct xm_shared_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    if (!g->is_left) {
        g->is_left = true;
        xm_fail(&g->why, why->status, "rank %u: %s", c->rank, why->text);
        pthread_cond_broadcast(&g->met);
    }
    pthread_mutex_unlock(&g->lock);
}

static const struct xm_collective_ops ops = {.show = show, .done = done, .leave = leave};

struct xm_shared_group *
xm_shared_group_create(uint32_t ranks)
{
    struct xm_shared_group *g =
        ranks > 0 && ranks <= XM_MOST_RANKS ? xm_calloc(1, sizeof(*g)) : NULL;
    if (!g)
        return NULL;
    g->ranks = ranks;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->met, NULL);
    for (uint32_t r = 0; r < ranks; r++)
        g->member[r] = (struct member){{&ops, r, ranks}, g};
    return g;
}

void
xm_shared_group_free(struct xm_shared_group *g)
{
    if (!g)
        return;
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->met);
    xm_free(g);
}

struct xm_collective *
xm_shared_group_rank(struct xm_shared_group *g, uint32_t rank)
{
    return &g->member[rank].base;
}

void
xm_shared_group_reset(struct xm_shared_group *g, struct xm_error *why)
{
    pthread_mutex_lock(&g->lock);
    *why = g->why;
    g->waiting = 0;
    g->is_left = false;
    g->why = (struct xm_error){0};
    pthread_mutex_unlock(&g->lock);
}
