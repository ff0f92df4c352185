/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of an engine that are the same for every driver: creation, references, and whether
 * its device is lost. Buffers, kernels and queues have files of their own.
 */
#include "runtime/engine.h"

#include "runtime/engine_ops.h"
#include "runtime/util/log.h"

/* ---- engines -------------------------------------------------------------------- */

enum xm_status
xm_engine_list(const struct xm_device_info **infos, size_t *n, struct xm_error *err)
{
    return xm_ocl_list(infos, n, err);
}

/* Warns, once, of a chip that devices.def does not know. */
static void
warn_of_guess(const struct xm_device_info *d)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (d->facts_guessed && !atomic_flag_test_and_set(&warned))
        xm_log(XM_LOG_WARNING,
               "%s (IP %u.%u.%u) is not in the table of chips: it is treated as %s, with "
               "the facts that its driver reports",
               d->name, d->ip_major, d->ip_minor, d->ip_revision,
               d->arch == XM_ARCH_UNKNOWN ? "an unknown GPU" : xm_arch_text(d->arch));
}

enum xm_status
xm_engine_create(size_t index, const struct xm_config *config, struct xm_engine **out,
                 struct xm_error *err)
{
    return xm_engine_create_in(index, config, NULL, out, err);
}

enum xm_status
xm_engine_find_shared(struct xm_shared_cl *share, uint32_t n, size_t *index,
                      struct xm_error *err)
{
    return xm_ocl_find_shared(share, n, index, err);
}

bool
xm_shared_queue_is_out_of_order(const struct xm_shared_cl *share)
{
    return share->queue && xm_ocl_queue_is_out_of_order(share->queue);
}

enum xm_status
xm_engine_create_in(size_t index, const struct xm_config *config,
                    const struct xm_shared_cl *share, struct xm_engine **out,
                    struct xm_error *err)
{
    *out = NULL;
    const struct xm_device_info *infos;
    size_t n;
    XM_TRY(xm_ocl_list(&infos, &n, err));
    if (n == 0)
        return xm_fail(err, XM_NOT_FOUND,
                       "there is no OpenCL device: no OpenCL driver is installed, or "
                       "none reports a device (see clinfo)");
    if (index >= n)
        return xm_fail(err, XM_NOT_FOUND,
                       "there is no device %zu: %zu OpenCL device%s present", index, n,
                       n == 1 ? " is" : "s are");
    warn_of_guess(&infos[index]);
    return xm_ocl_engine_create(index, config, share, out, err);
}

enum xm_status
xm_engine_init(struct xm_engine *e, const struct xm_engine_ops *ops,
               const struct xm_device_info *info, const struct xm_config *config,
               struct xm_error *err)
{
    e->ops = ops;
    e->info = *info;
    if (config)
        e->config = *config;
    else
        xm_config_init(&e->config);
    if (!e->config.finalised)
        XM_TRY(xm_config_finalise(&e->config, info, NULL, NULL, err));
    atomic_init(&e->refs, 1);
    atomic_init(&e->kernels_built, 0);
    atomic_init(&e->kernels_loaded, 0);
    atomic_init(&e->expected, 0);
    atomic_init(&e->launches_built, 0);
    atomic_init(&e->cache_bytes, 0);
    atomic_init(&e->build_ns, 0);
    atomic_init(&e->is_lost, false);
    if (pthread_mutex_init(&e->stats_lock, NULL))
        return xm_no_memory(err, "a lock");
    if (pthread_mutex_init(&e->kernel_lock, NULL)) {
        pthread_mutex_destroy(&e->stats_lock);
        return xm_no_memory(err, "a lock");
    }
    return XM_OK;
}

void
xm_engine_fini(struct xm_engine *e)
{
    pthread_mutex_destroy(&e->kernel_lock);
    pthread_mutex_destroy(&e->stats_lock);
}

void
xm_engine_ref(struct xm_engine *engine)
{
    atomic_fetch_add(&engine->refs, 1);
}

void
xm_engine_unref(struct xm_engine *engine)
{
    if (!engine || atomic_fetch_sub(&engine->refs, 1) != 1)
        return;
    xm_engine_free_kernels(engine);
    engine->ops->destroy(engine);
}

const struct xm_device_info *
xm_engine_info(const struct xm_engine *engine)
{
    return &engine->info;
}

const struct xm_config *
xm_engine_config(const struct xm_engine *engine)
{
    return &engine->config;
}

void
xm_engine_memory_stats(const struct xm_engine *engine, struct xm_memory_stats *out)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&engine->stats_lock;
    pthread_mutex_lock(lock);
    *out = engine->stats;
    pthread_mutex_unlock(lock);
}

bool
xm_engine_only_counts(const struct xm_engine *engine)
{
    return engine->ops->only_counts;
}

void *
xm_engine_cl_context(const struct xm_engine *engine)
{
    return engine->ops->cl_context ? engine->ops->cl_context(engine) : NULL;
}

void *
xm_engine_cl_device(const struct xm_engine *engine)
{
    return engine->ops->cl_device ? engine->ops->cl_device(engine) : NULL;
}

bool
xm_engine_has_usm(const struct xm_engine *engine)
{
    return engine->ops->has_usm && engine->ops->has_usm(engine);
}

/* ---- a lost device --------------------------------------------------------------- */

bool
xm_engine_is_lost(const struct xm_engine *engine)
{
    return atomic_load(&engine->is_lost);
}

enum xm_status
xm_engine_check_alive(const struct xm_engine *e, struct xm_error *err)
{
    if (!atomic_load(&e->is_lost))
        return XM_OK;
    return xm_fail(err, XM_LOST, "%s is lost: %s", e->info.name, e->lost.text);
}

enum xm_status
xm_engine_settle(struct xm_engine *e, enum xm_status status, struct xm_error *err)
{
    if (status != XM_LOST)
        return status;
    pthread_mutex_lock(&e->stats_lock);
    if (!atomic_load(&e->is_lost)) {
        if (err && err->status == XM_LOST)
            e->lost = *err;
        else
            xm_fail(&e->lost, XM_LOST, "an OpenCL call did not return");
        xm_error_prefix(err, "%s is lost", e->info.name);
        atomic_store(&e->is_lost, true);
    }
    pthread_mutex_unlock(&e->stats_lock);
    return status;
}
