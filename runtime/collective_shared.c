/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that are threads of one process: they read each other's bytes where they lie.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/collective.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory.h"
#include "runtime/util/workers.h"

struct member {
    struct xm_collective base; /* first */
    struct xm_shared_group *group;
};

struct xm_shared_group {
    uint32_t ranks;
    bool has_cores;       /* for each rank */
    pthread_mutex_t lock; /* all below */
    pthread_cond_t met;
    uint32_t waiting; /* ranks that wait for the others   */
    _Atomic uint64_t
        meeting; /* counts how often all have come; read without the lock, too */
    bool is_left;
    struct xm_error why; /* of the first that has left */
    /* in meetings of even and odd numbers: of the next one while this one is still read */
    struct xm_bytes shown[2][XM_MOST_RANKS];
    struct member member[XM_MOST_RANKS];
};

/* Waking a thread that sleeps takes about 50 us: a rank spins as long before it sleeps, where each
 * has a core of its own. */
#define SPIN_S 5e-5

static void
spin_until_met(struct xm_shared_group *g, uint64_t meeting)
{
    const double until = xm_now() + SPIN_S;
    while (atomic_load_explicit(&g->meeting, memory_order_acquire) == meeting &&
           g->has_cores && xm_now() < until)
        sched_yield();
}

/* A meeting that took place counts, whoever has left since. */
static enum xm_status
meet(struct xm_collective *c, struct xm_bytes mine, struct xm_bytes *all,
     struct xm_error *err)
{
    struct xm_shared_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    const uint64_t meeting = g->meeting;
    struct xm_bytes *shown = g->shown[meeting % 2];
    shown[c->rank] = mine;
    if (!g->is_left && ++g->waiting == g->ranks) {
        g->waiting = 0;
        atomic_store_explicit(&g->meeting, meeting + 1, memory_order_release);
        pthread_cond_broadcast(&g->met);
    } else if (!g->is_left) {
        pthread_mutex_unlock(&g->lock);
        spin_until_met(g, meeting);
        pthread_mutex_lock(&g->lock);
    }
    while (g->meeting == meeting && !g->is_left)
        pthread_cond_wait(&g->met, &g->lock);
    const bool has_met = g->meeting != meeting;
    if (has_met)
        memcpy(all, shown, g->ranks * sizeof(*all));
    const enum xm_status s =
        has_met ? XM_OK : xm_fail(err, g->why.status, "%s", g->why.text);
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

static const struct xm_collective_ops ops = {.meet = meet, .leave = leave};

struct xm_shared_group *
xm_shared_group_create(uint32_t ranks)
{
    struct xm_shared_group *g =
        ranks > 0 && ranks <= XM_MOST_RANKS ? xm_calloc(1, sizeof(*g)) : NULL;
    if (!g)
        return NULL;
    g->ranks = ranks;
    g->has_cores = ranks <= xm_workers_cores();
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
