/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fake/fake_ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/memory.h"

/* The two streams of messages of a pair of ranks; messages of each are numbered from 0. */
enum stream { MEETINGS, VALUES, N_STREAMS };

/* Arrival time of a message that is lost. */
#define LOST 1e300

/* A message that has been sent and not yet taken by its receiver. */
struct message {
    struct message *next;
    uint64_t number;
    double arrives;        /* time of xm_now at which it arrives */
    struct xm_bytes bytes; /* meeting: the sender's memory; value: owned                */
};

struct channel {
    struct message *first; /* not in order of numbers */
    uint64_t sent, taken;
};

struct member {
    struct xm_collective base; /* first */
    struct fake_group *group;
    uint8_t *shown[XM_MOST_RANKS]; /* copies of the bytes of the last meeting, owned */
    uint64_t bytes[XM_MOST_RANKS];
};

struct fake_group {
    struct xm_rank_group base; /* first */
    uint32_t ranks;
    struct xm_fake_network network;
    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t changed;
    bool is_left;
    struct xm_error why; /* reason of the first rank that left */
    uint64_t runs;       /* resets so far: each run has other fates of messages */
    struct member member[XM_MOST_RANKS];
    struct channel *channel; /* [(from * ranks + to) * N_STREAMS + stream] */
};

static struct channel *
channel_of(struct fake_group *g, uint32_t from, uint32_t to, enum stream stream)
{
    return &g->channel[((size_t)from * g->ranks + to) * N_STREAMS + stream];
}

/* splitmix64's mixing function. */
static uint64_t
mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The pseudo-random fate of a message: it depends on the seed, the run, the channel and the
 * message's number only. */
static uint64_t
fate_of(const struct fake_group *g, const struct channel *w, uint64_t number)
{
    return mix(mix(mix(g->network.seed + 1) + g->runs) * 31 +
               (uint64_t)(w - g->channel) * 1000003 + number);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void
free_message(struct message *m, enum stream stream)
{
    if (stream == VALUES)
        xm_free((void *)m->bytes.p);
    xm_free(m);
}

/* Sends a message; `bytes` as in struct message. */
static enum xm_status
put(struct fake_group *g, struct channel *w, struct xm_bytes bytes, struct xm_error *err)
{
    struct message *m = xm_calloc(1, sizeof(*m));
    if (!m)
        return xm_no_memory(err, "a message");
    const uint64_t fate = fate_of(g, w, w->sent);
    const bool is_lost =
        g->network.lost_one_in && (fate >> 32) % g->network.lost_one_in == 0;
    const double share = (double)(fate & 0xffffffff) / 4294967296.0;
    *m = (struct message){.next = w->first,
                          .number = w->sent++,
                          .arrives =
                              is_lost ? LOST : xm_now() + share * g->network.delay_s,
                          .bytes = bytes};
    w->first = m;
    pthread_cond_broadcast(&g->changed);
    return XM_OK;
}

/* Sleeps until the group changes or the time `until` comes. */
static void
sleep_until(struct fake_group *g, double until)
{
    const double s = until - xm_now();
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    const int64_t ns = at.tv_nsec + (int64_t)((s > 0.0 ? s : 0.0) * 1e9) + 1000;
    at.tv_sec += (time_t)(ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&g->changed, &g->lock, &at);
}

static enum xm_status
fail_as_left(const struct fake_group *g, struct xm_error *err)
{
    return xm_fail(err, g->why.status, "%s", g->why.text);
}

/* Waits for the next message of channel w and takes it. A message that was sent is received even if
 * its rank has left since. Fails if a rank has left, or after the network's patience. */
static enum xm_status
take(struct fake_group *g, struct channel *w, uint32_t from, struct message **out,
     struct xm_error *err)
{
    const double deadline = xm_now() + g->network.patience_s;
    for (;;) {
        struct message **at = &w->first;
        while (*at && (*at)->number != w->taken)
            at = &(*at)->next;
        const double now = xm_now();
        if (*at && (*at)->arrives <= now) {
            *out = *at;
            *at = (*at)->next;
            w->taken++;
            pthread_cond_broadcast(&g->changed);
            return XM_OK;
        }
        const bool is_coming = *at && (*at)->arrives < LOST;
        if (g->is_left && !is_coming)
            return fail_as_left(g, err);
        if (now >= deadline)
            return xm_fail(err, XM_LOST,
                           "message %" PRIu64 " of rank %u has not come for %g s: it is "
                           "lost",
                           w->taken, from, g->network.patience_s);
        sleep_until(g,
                    is_coming && (*at)->arrives < deadline ? (*at)->arrives : deadline);
    }
}

/* ---- the collective ------------------------------------------------------------------------- */

/* Overwrites and frees the copies of the last meeting: nobody may read them any more. */
static void
drop_shown(struct member *m)
{
    for (uint32_t r = 0; r < m->base.ranks; r++) {
        if (m->shown[r])
            memset(m->shown[r], 0xff, (size_t)m->bytes[r]);
        xm_free(m->shown[r]);
        m->shown[r] = NULL;
    }
}

static enum xm_status
show(struct member *m, uint32_t from, struct xm_bytes bytes, struct xm_bytes *out,
     struct xm_error *err)
{
    m->shown[from] = xm_malloc((size_t)bytes.n + 1);
    if (!m->shown[from])
        return xm_no_memory(err, "what a rank shows");
    if (bytes.n)
        memcpy(m->shown[from], bytes.p, (size_t)bytes.n);
    m->bytes[from] = bytes.n;
    *out = (struct xm_bytes){m->shown[from], bytes.n};
    return XM_OK;
}

/* A meeting. It takes all messages before it copies the first, so that bytes are read as late as
 * allowed. */
static enum xm_status
meet_locked(struct member *m, struct xm_bytes mine, struct xm_bytes *all,
            struct xm_error *err)
{
    struct fake_group *g = m->group;
    const uint32_t own = m->base.rank;
    struct message *came[XM_MOST_RANKS] = {NULL};
    enum xm_status s = XM_OK;
    for (uint32_t r = 0; r < g->ranks && s == XM_OK; r++)
        if (r != own)
            s = put(g, channel_of(g, own, r, MEETINGS), mine, err);
    for (uint32_t r = 0; r < g->ranks && s == XM_OK; r++)
        if (r != own)
            s = take(g, channel_of(g, r, own, MEETINGS), r, &came[r], err);
    drop_shown(m);
    for (uint32_t r = 0; r < g->ranks && s == XM_OK; r++)
        s = show(m, r, r == own ? mine : came[r]->bytes, &all[r], err);
    for (uint32_t r = 0; r < g->ranks; r++)
        if (came[r])
            free_message(came[r], MEETINGS);
    return s;
}

static enum xm_status
meet(struct xm_collective *c, struct xm_bytes mine, struct xm_bytes *all,
     struct xm_error *err)
{
    struct member *m = (struct member *)c;
    pthread_mutex_lock(&m->group->lock);
    const enum xm_status s = meet_locked(m, mine, all, err);
    pthread_mutex_unlock(&m->group->lock);
    return s;
}

static enum xm_status
send_locked(struct fake_group *g, struct channel *w, struct xm_bytes mine,
            struct xm_error *err)
{
    const double deadline = xm_now() + g->network.patience_s;
    while (w->sent - w->taken >= XM_UNREAD_MESSAGES && !g->is_left && xm_now() < deadline)
        sleep_until(g, deadline);
    if (w->sent - w->taken >= XM_UNREAD_MESSAGES)
        return g->is_left ? fail_as_left(g, err)
                          : xm_fail(err, XM_LOST, "messages have not been read for %g s",
                                    g->network.patience_s);
    uint8_t *bytes = xm_malloc((size_t)mine.n + 1);
    if (!bytes)
        return xm_no_memory(err, "a message to another rank");
    if (mine.n)
        memcpy(bytes, mine.p, (size_t)mine.n);
    const enum xm_status s = put(g, w, (struct xm_bytes){bytes, mine.n}, err);
    if (s != XM_OK)
        xm_free(bytes);
    return s;
}

static enum xm_status
send_value(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
           struct xm_error *err)
{
    struct fake_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    const enum xm_status s =
        send_locked(g, channel_of(g, c->rank, to, VALUES), mine, err);
    pthread_mutex_unlock(&g->lock);
    return s;
}

static enum xm_status
receive_value(struct xm_collective *c, uint32_t from, uint8_t *to, uint64_t n,
              struct xm_error *err)
{
    struct fake_group *g = ((struct member *)c)->group;
    struct message *m = NULL;
    pthread_mutex_lock(&g->lock);
    enum xm_status s = take(g, channel_of(g, from, c->rank, VALUES), from, &m, err);
    pthread_mutex_unlock(&g->lock);
    if (s != XM_OK)
        return s;
    if (m->bytes.n == n)
        memcpy(to, m->bytes.p, (size_t)n);
    else
        s = xm_fail(err, XM_INVALID,
                    "rank %u sends %" PRIu64 " bytes, rank %u expects %" PRIu64, from,
                    m->bytes.n, c->rank, n);
    free_message(m, VALUES);
    return s;
}

static void
leave(struct xm_collective *c, const struct xm_error *why)
{
    struct fake_group *g = ((struct member *)c)->group;
    pthread_mutex_lock(&g->lock);
    if (!g->is_left)
        xm_fail(&g->why, why->status, "rank %u: %s", c->rank, why->text);
    g->is_left = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static const struct xm_collective_ops ops = {
    .meet = meet, .send = send_value, .receive = receive_value, .leave = leave};

/* ---- groups --------------------------------------------------------------------------------- */

static void
drop_messages(struct fake_group *g)
{
    for (size_t i = 0; i < (size_t)g->ranks * g->ranks * N_STREAMS; i++) {
        for (struct message *m = g->channel[i].first, *next; m; m = next) {
            next = m->next;
            free_message(m, (enum stream)(i % N_STREAMS));
        }
        g->channel[i] = (struct channel){0};
    }
}

static struct xm_collective *
end_of(struct xm_rank_group *g, uint32_t rank)
{
    return &((struct fake_group *)g)->member[rank].base;
}

static void
reset(struct xm_rank_group *base, struct xm_error *why)
{
    struct fake_group *g = (struct fake_group *)base;
    pthread_mutex_lock(&g->lock);
    *why = g->why;
    g->is_left = false;
    g->why = (struct xm_error){0};
    g->runs++;
    drop_messages(g);
    pthread_mutex_unlock(&g->lock);
}

static void
destroy(struct xm_rank_group *base)
{
    struct fake_group *g = (struct fake_group *)base;
    drop_messages(g);
    for (uint32_t r = 0; r < g->ranks; r++)
        drop_shown(&g->member[r]);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    xm_free(g->channel);
    xm_free(g);
}

static const struct xm_rank_group_ops group_ops = {
    .rank = end_of, .reset = reset, .destroy = destroy};

struct xm_rank_group *
xm_fake_group_create(uint32_t ranks, const struct xm_fake_network *network)
{
    struct fake_group *g =
        ranks > 0 && ranks <= XM_MOST_RANKS ? xm_calloc(1, sizeof(*g)) : NULL;
    struct channel *way =
        g ? xm_calloc((size_t)ranks * ranks * N_STREAMS, sizeof(*way)) : NULL;
    if (!way) {
        xm_free(g);
        return NULL;
    }
    g->base.ops = &group_ops;
    g->ranks = ranks;
    g->network = *network;
    g->channel = way;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    for (uint32_t r = 0; r < ranks; r++)
        g->member[r] = (struct member){.base = {&ops, r, ranks}, .group = g};
    return &g->base;
}
