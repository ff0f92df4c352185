/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/lower/expert_caches.h"

#include <inttypes.h>
#include <pthread.h>

#include "primitives/moe/expert_cache.h"
#include "primitives/moe/moe.h"
#include "runtime/util/log.h"

struct xm_expert_caches {
    pthread_mutex_t lock; /* held by the run that uses the caches */
    bool in_doubt;        /* a run that used them has failed      */
};

static const double mib = 1048576.0;

/* ---- making them ------------------------------------------------------------------- */

static uint64_t
host_experts(const struct xm_program *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        bytes += p->steps[i].host_experts;
    return bytes;
}

static void
say_size(const struct xm_program *p, uint64_t whole)
{
    uint64_t slots = 0, experts = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_expert_cache *c = p->steps[i].experts;
        slots += c ? c->slots : 0;
        experts += c ? c->experts : 0;
    }
    if (xm_engine_only_counts(p->engine))
        return;
    if (slots)
        xm_log(XM_LOG_INFO,
               "an expert cache of %.0f MiB holds %" PRIu64 " of the %" PRIu64
               " experts in host memory",
               (double)p->expert_cache_bytes / mib, slots, experts);
    else if (xm_config_user_set(&p->config, XM_OPTION_expert_cache))
        xm_log(XM_LOG_WARNING,
               "there is no expert cache: %u MiB cannot hold the experts of one token in "
               "every layer; the experts in host memory take %.0f MiB in all",
               p->config.expert_cache, (double)whole / mib);
}

static enum xm_status
create_all(struct xm_program *p, uint64_t whole, struct xm_queue *queue,
           struct xm_error *err)
{
    const double size = (double)p->config.expert_cache * mib;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct xm_step *s = &p->steps[i];
        uint64_t share = (uint64_t)(size * (double)s->host_experts / (double)whole);
        if (!s->host_experts)
            continue;
        enum xm_status status =
            xm_moe_cache_create(s->primitive, share, queue, &s->experts, err);
        if (status != XM_OK) {
            xm_error_prefix(err, "the expert cache of '%s'", s->name);
            return status;
        }
        p->expert_cache_bytes += s->experts ? xm_buffer_bytes(s->experts->memory) : 0;
    }
    return XM_OK;
}

static void
destroy_all(struct xm_program *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        xm_expert_cache_destroy(p->steps[i].experts);
        p->steps[i].experts = NULL;
    }
    p->expert_cache_bytes = 0;
}

enum xm_status
xm_expert_caches_create(struct xm_program *p, struct xm_error *err)
{
    const uint64_t whole = host_experts(p);
    struct xm_queue *queue = NULL;
    struct xm_error why = {0};
    if (p->config.expert_cache == 0 || whole == 0)
        return XM_OK;
    p->expert_caches = xm_calloc(1, sizeof(*p->expert_caches));
    if (!p->expert_caches)
        return xm_no_memory(err, "the expert caches");
    pthread_mutex_init(&p->expert_caches->lock, NULL);
    XM_TRY(xm_queue_create(p->engine, &queue, err));
    enum xm_status s = create_all(p, whole, queue, &why);
    xm_queue_destroy(queue);
    if (s == XM_NO_MEMORY && !xm_config_user_set(&p->config, XM_OPTION_expert_cache)) {
        xm_log(XM_LOG_WARNING, "there is no expert cache: %s", why.text);
        destroy_all(p);
        return XM_OK;
    }
    if (s == XM_OK)
        say_size(p, whole);
    return s == XM_OK ? s : xm_fail(err, s, "%s", why.text);
}

void
xm_expert_caches_destroy(struct xm_program *p)
{
    destroy_all(p);
    if (p->expert_caches)
        pthread_mutex_destroy(&p->expert_caches->lock);
    xm_free(p->expert_caches);
    p->expert_caches = NULL;
}

bool
xm_expert_caches_drop(struct xm_program *p)
{
    struct xm_expert_caches *c = p->expert_caches;
    if (!c || pthread_mutex_trylock(&c->lock) != 0)
        return false;
    bool any = p->expert_cache_bytes > 0;
    if (any)
        xm_log(XM_LOG_WARNING,
               "the expert cache is released, because a run needs some of its %.0f MiB",
               (double)p->expert_cache_bytes / mib);
    destroy_all(p);
    pthread_mutex_unlock(&c->lock);
    return any;
}

/* ---- taking turns ------------------------------------------------------------------ */

/* Empties the caches, because after a failed run their tables may name experts that were never
 * fetched. */
static enum xm_status
clear(const struct xm_program *p, struct xm_queue *queue, struct xm_error *err)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].experts)
            XM_TRY(xm_expert_cache_clear(p->steps[i].experts, queue, err));
    }
    p->expert_caches->in_doubt = false;
    return XM_OK;
}

enum xm_status
xm_expert_caches_take(struct xm_program *p, struct xm_queue *queue, bool *taken,
                      struct xm_error *err)
{
    struct xm_expert_caches *c = p->expert_caches;
    *taken = c && pthread_mutex_trylock(&c->lock) == 0;
    if (!*taken || !c->in_doubt)
        return XM_OK;
    enum xm_status s = clear(p, queue, err);
    if (s != XM_OK) {
        *taken = false;
        pthread_mutex_unlock(&c->lock);
    }
    return s;
}

void
xm_expert_caches_give_back(struct xm_program *p, bool run_succeeded)
{
    p->expert_caches->in_doubt |= !run_succeeded;
    pthread_mutex_unlock(&p->expert_caches->lock);
}

/* ---- statistics -------------------------------------------------------------------- */

static enum xm_status
add_counts(const struct xm_program *p, struct xm_queue *queue,
           struct xm_expert_cache_stats *out, struct xm_error *err)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_expert_cache *c = p->steps[i].experts;
        struct xm_expert_counts counts;
        if (!c)
            continue;
        XM_TRY(xm_expert_cache_read_counts(c, queue, &counts, err));
        out->layers++;
        out->slots += c->slots;
        out->hits += counts.hits;
        out->misses += counts.misses;
        out->fetched_bytes += counts.fetched_bytes;
    }
    return XM_OK;
}

enum xm_status
xm_expert_caches_stats(const struct xm_program *p, struct xm_expert_cache_stats *out,
                       struct xm_error *err)
{
    struct xm_queue *queue = NULL;
    *out = (struct xm_expert_cache_stats){0};
    if (!p->expert_caches)
        return XM_OK;
    XM_TRY(xm_queue_create(p->engine, &queue, err));
    pthread_mutex_lock(&p->expert_caches->lock);
    out->bytes = p->expert_cache_bytes;
    enum xm_status s = add_counts(p, queue, out, err);
    pthread_mutex_unlock(&p->expert_caches->lock);
    xm_queue_destroy(queue);
    return s;
}
