/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that are threads of one process. In a meeting they read each other's bytes in place;
 * messages are copied. */
#include <inttypes.h>
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
    struct shared_group *group;
};

/* Messages from one rank to another, in slots that are used in turn. Slots taken … sent - 1 (modulo
 * their number) hold unread messages and belong to the receiver, the others to the sender. */
struct channel {
    /* numbers of messages so far, changed under the group's lock */
    _Atomic uint64_t sent, taken;
    struct {
        uint8_t *bytes;
        uint64_t n, room;
    } slot[XM_UNREAD_MESSAGES];
};

struct shared_group {
    struct xm_rank_group base; /* first */
    uint32_t ranks;
    bool has_cores;       /* each rank can have a core of its own */
    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t met;
    uint32_t waiting; /* ranks that wait for the others   */
    /* counts complete meetings; also read without the lock */
    _Atomic uint64_t meeting;
    bool is_left;
    struct xm_error why; /* reason of the first rank that left */
    /* What the ranks show, in meetings of even and of odd numbers: a rank may show bytes for the
     * next meeting while others still read those of this one. */
    struct xm_bytes shown[2][XM_MOST_RANKS];
    struct member member[XM_MOST_RANKS];
    pthread_cond_t passed;   /* signalled when a channel changes */
    struct channel *channel; /* [from * ranks + to] */
};

/* How long a rank spins before it sleeps, if each rank has a core of its own: about as long as
 * waking a sleeping thread takes (50 us). */
#define SPIN_S 5e-5

static void
spin_until_met(struct shared_group *g, uint64_t meeting)
{
    const double until = xm_now() + SPIN_S;
    while (atomic_load_explicit(&g->meeting, memory_order_acquire) == meeting &&
           g->has_cores && xm_now() < until)
        sched_yield();
}

/* Succeeds if the meeting took place, even if a rank has left since. */
static enum xm_status
meet(struct xm_collective *c, struct xm_bytes mine, struct xm_bytes *all,
     struct xm_error *err)
{
    struct shared_group *g = ((struct member *)c)->group;
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
    struct shared_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    if (!g->is_left) {
        g->is_left = true;
        xm_fail(&g->why, why->status, "rank %u: %s", c->rank, why->text);
        pthread_cond_broadcast(&g->met);
        pthread_cond_broadcast(&g->passed);
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- messages ------------------------------------------------------------------------------- */

static uint64_t
unread(const struct channel *ch)
{
    return atomic_load_explicit(&ch->sent, memory_order_acquire) -
           atomic_load_explicit(&ch->taken, memory_order_acquire);
}

/* Waits until the channel has fewer than `below` or more than `above` unread messages. Fails if a
 * rank has left before that. */
static enum xm_status
wait_for_channel(struct shared_group *g, const struct channel *ch, uint64_t below,
                 uint64_t above, struct xm_error *err)
{
    const double until = xm_now() + SPIN_S;
    uint64_t n = unread(ch);
    for (; n >= below && n <= above && g->has_cores && xm_now() < until; n = unread(ch))
        sched_yield();
    pthread_mutex_lock(&g->lock);
    for (n = unread(ch); n >= below && n <= above && !g->is_left; n = unread(ch))
        pthread_cond_wait(&g->passed, &g->lock);
    const bool is_met = n < below || n > above;
    const enum xm_status s =
        is_met ? XM_OK : xm_fail(err, g->why.status, "%s", g->why.text);
    pthread_mutex_unlock(&g->lock);
    return s;
}

static void
count(struct shared_group *g, _Atomic uint64_t *messages)
{
    pthread_mutex_lock(&g->lock);
    atomic_fetch_add_explicit(messages, 1, memory_order_release);
    pthread_cond_broadcast(&g->passed);
    pthread_mutex_unlock(&g->lock);
}

static enum xm_status
send_copy(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
          struct xm_error *err)
{
    struct shared_group *g = ((struct member *)c)->group;
    struct channel *ch = &g->channel[c->rank * g->ranks + to];
    const uint32_t at = (uint32_t)(ch->sent % XM_UNREAD_MESSAGES);
    XM_TRY(wait_for_channel(g, ch, XM_UNREAD_MESSAGES, UINT64_MAX, err));
    if (ch->slot[at].room < mine.n) {
        xm_free(ch->slot[at].bytes);
        ch->slot[at].bytes = mine.n <= SIZE_MAX ? xm_malloc((size_t)mine.n) : NULL;
        ch->slot[at].room = ch->slot[at].bytes ? mine.n : 0;
    }
    if (!ch->slot[at].bytes)
        return xm_no_memory(err, "a message to another rank");
    memcpy(ch->slot[at].bytes, mine.p, (size_t)mine.n);
    ch->slot[at].n = mine.n;
    count(g, &ch->sent);
    return XM_OK;
}

static enum xm_status
receive_copy(struct xm_collective *c, uint32_t from, uint8_t *to, uint64_t n,
             struct xm_error *err)
{
    struct shared_group *g = ((struct member *)c)->group;
    struct channel *ch = &g->channel[from * g->ranks + c->rank];
    const uint32_t at = (uint32_t)(ch->taken % XM_UNREAD_MESSAGES);
    XM_TRY(wait_for_channel(g, ch, 0, 0, err));
    const uint64_t has = ch->slot[at].n;
    if (has == n)
        memcpy(to, ch->slot[at].bytes, (size_t)n);
    count(g, &ch->taken);
    return has == n ? XM_OK
                    : xm_fail(err, XM_INVALID,
                              "rank %u sends %" PRIu64 " bytes, rank %u expects %" PRIu64,
                              from, has, c->rank, n);
}

static void
drop_messages(struct shared_group *g)
{
    for (uint32_t i = 0; i < g->ranks * g->ranks; i++)
        g->channel[i].taken = g->channel[i].sent;
}

static const struct xm_collective_ops ops = {
    .meet = meet, .send = send_copy, .receive = receive_copy, .leave = leave};

/* ---- groups --------------------------------------------------------------------------------- */

static void
destroy(struct xm_rank_group *base)
{
    struct shared_group *g = (struct shared_group *)base;
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->met);
    pthread_cond_destroy(&g->passed);
    for (uint32_t i = 0; i < g->ranks * g->ranks; i++) {
        for (uint32_t k = 0; k < XM_UNREAD_MESSAGES; k++)
            xm_free(g->channel[i].slot[k].bytes);
    }
    xm_free(g->channel);
    xm_free(g);
}

static struct xm_collective *
end_of(struct xm_rank_group *g, uint32_t rank)
{
    return &((struct shared_group *)g)->member[rank].base;
}

static void
reset(struct xm_rank_group *base, struct xm_error *why)
{
    struct shared_group *g = (struct shared_group *)base;
    pthread_mutex_lock(&g->lock);
    *why = g->why;
    g->waiting = 0;
    g->is_left = false;
    drop_messages(g);
    g->why = (struct xm_error){0};
    pthread_mutex_unlock(&g->lock);
}

static const struct xm_rank_group_ops group_ops = {
    .rank = end_of, .reset = reset, .destroy = destroy};

struct xm_rank_group *
xm_shared_group_create(uint32_t ranks)
{
    struct shared_group *g =
        ranks > 0 && ranks <= XM_MOST_RANKS ? xm_calloc(1, sizeof(*g)) : NULL;
    struct channel *channel =
        g ? xm_calloc((size_t)ranks * ranks, sizeof(*channel)) : NULL;
    if (!channel) {
        xm_free(g);
        return NULL;
    }
    g->base.ops = &group_ops;
    g->channel = channel;
    g->ranks = ranks;
    g->has_cores = ranks <= xm_workers_cores();
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->met, NULL);
    pthread_cond_init(&g->passed, NULL);
    for (uint32_t r = 0; r < ranks; r++)
        g->member[r] = (struct member){{&ops, r, ranks}, g};
    return &g->base;
}
