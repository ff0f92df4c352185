/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the kernels that an engine has built and loaded, and those that it is expected to build;
 * calls the function of xm_build_watch; and keeps the offers of binaries
 * (xm_engine_offer_kernels). */
#include "runtime/engine_ops.h"

uint64_t
xm_engine_kernels_built(const struct xm_engine *engine)
{
    return atomic_load(&engine->kernels_built);
}

void
xm_engine_build_stats(const struct xm_engine *engine, struct xm_build_stats *out)
{
    *out = (struct xm_build_stats){
        .built = atomic_load(&engine->kernels_built),
        .loaded = atomic_load(&engine->kernels_loaded),
        .launches = atomic_load(&engine->launches_built),
        .cache_bytes = atomic_load(&engine->cache_bytes),
        .seconds = 1e-9 * (double)atomic_load(&engine->build_ns),
    };
}

void
xm_engine_offer_kernels(struct xm_engine *engine, struct xm_kernel_offer *offer)
{
    pthread_mutex_lock(&engine->kernel_lock);
    offer->next = engine->offers;
    engine->offers = offer;
    pthread_mutex_unlock(&engine->kernel_lock);
}

void
xm_engine_withdraw_kernels(struct xm_engine *engine, struct xm_kernel_offer *offer)
{
    pthread_mutex_lock(&engine->kernel_lock);
    struct xm_kernel_offer **link = &engine->offers;
    while (*link && *link != offer)
        link = &(*link)->next;
    if (*link)
        *link = offer->next;
    pthread_mutex_unlock(&engine->kernel_lock);
}

const void *
xm_engine_offered(const struct xm_engine *e, const struct xm_kernel_key *key, size_t *n)
{
    const void *bytes = NULL;
    for (const struct xm_kernel_offer *o = e->offers; o && !bytes; o = o->next)
        bytes = o->find(o->ctx, key, n);
    return bytes;
}

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static xm_build_fn watcher;
static void *watcher_ctx;
static atomic_uint_fast64_t n_building;

void
xm_build_watch(xm_build_fn fn, void *ctx)
{
    pthread_mutex_lock(&watch_lock);
    watcher = fn;
    watcher_ctx = ctx;
    pthread_mutex_unlock(&watch_lock);
}

bool
xm_build_is_watched(void)
{
    pthread_mutex_lock(&watch_lock);
    const bool is_watched = watcher != NULL;
    pthread_mutex_unlock(&watch_lock);
    return is_watched;
}

/* The number that the count of builds (n_building, kernels loaded, spared) has after `n` more
 * builds. */
static uint64_t
builds_with(const struct xm_engine *e, uint64_t n)
{
    return atomic_load(&n_building) + atomic_load(&e->kernels_loaded) +
           atomic_load(&e->spared) + n;
}

static bool
builds_at_launch(const struct xm_engine *e)
{
    return xm_device_has(&e->info, XM_CAP_DRIVER_FILES);
}

void
xm_engine_expect_builds(struct xm_engine *e, const struct xm_engine *counted)
{
    const uint64_t launches =
        builds_at_launch(e) ? atomic_load(&counted->launches_built) : 0;
    atomic_store(&e->expected,
                 builds_with(e, atomic_load(&counted->kernels_built) + launches));
}

/* The number of builds that `e` still has to do for kernel `c` of a counting engine. It has to
 * compile code for each kind of launch, unless the kernel was loaded from the cache, which then
 * most likely has that code. If `e` does not have the kernel yet, the kernel itself is one more
 * build: a variant that is forced builds its kernels at first use. */
static uint64_t
missing_builds(const struct xm_engine *e, const struct xm_kernel *c)
{
    const struct xm_kernel *k = xm_engine_find_kernel(e, c->name, c->defines);
    const uint64_t n = c->launched.n;
    return !k ? n + (n > 0) : k->is_new ? n : 0;
}

void
xm_engine_expect_launches(struct xm_engine *e, struct xm_engine *counted)
{
    uint64_t n = 0;
    pthread_mutex_lock(&e->kernel_lock);
    for (size_t i = 0; i < counted->n_kernels && builds_at_launch(e); i++)
        n += missing_builds(e, counted->kernels[i]);
    pthread_mutex_unlock(&e->kernel_lock);
    const uint64_t left = builds_with(e, n), expected = atomic_load(&e->expected);
    /* raise the count instead of lowering `expected`: a watcher may have shown it */
    if (left < expected)
        atomic_fetch_add(&e->spared, expected - left);
    else
        atomic_store(&e->expected, left);
}

void
xm_engine_say_building(struct xm_engine *e, const char *kernel)
{
    atomic_fetch_add(&n_building, 1);
    const uint64_t k = builds_with(e, 0), n = atomic_load(&e->expected);
    pthread_mutex_lock(&watch_lock);
    if (watcher)
        watcher(watcher_ctx, kernel, k, k <= n ? n : 0);
    pthread_mutex_unlock(&watch_lock);
}
