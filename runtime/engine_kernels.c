/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of an engine: built ones, found by name and defines, and those that its compiler has
 * refused. */
#include <string.h>

#include "runtime/engine_ops.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

static uint64_t
hash_of(const char *name, const char *defines)
{
    const uint64_t h = xm_hash_bytes(XM_HASH_SEED, name, strlen(name));
    return xm_hash_bytes(h, defines, strlen(defines));
}

struct xm_kernel *
xm_engine_find_kernel(const struct xm_engine *e, const char *name, const char *defines)
{
    struct xm_hash_probe p = xm_hash_begin(hash_of(name, defines));
    while (xm_hash_next(&e->kernel_index, &p)) {
        struct xm_kernel *k = e->kernels[p.item];
        if (strcmp(k->name, name) == 0 && strcmp(k->defines, defines) == 0)
            return k;
    }
    return NULL;
}

static enum xm_status
make_room_for_kernel(struct xm_engine *e, struct xm_error *err)
{
    struct xm_kernel **grown =
        xm_grow(e->kernels, &e->kernel_capacity, e->n_kernels + 1, sizeof(*grown));
    e->kernels = grown ? grown : e->kernels;
    return grown && xm_hash_reserve(&e->kernel_index, e->n_kernels + 1)
               ? XM_OK
               : xm_no_memory(err, "%zu kernels", e->n_kernels + 1);
}

/* Length of the first lines of a build log; later errors mostly follow from the first. */
static int
beginning_of(const char *log)
{
    enum { LINES = 12, BYTES = 2000 };
    size_t n = 0;
    for (int line = 0; line < LINES && log[n] && n < BYTES; line++) {
        n += strcspn(log + n, "\n");
        n += log[n] == '\n' && line + 1 < LINES;
    }
    return (int)(n < BYTES ? n : BYTES);
}

static void
warn_of_refusal(const struct xm_engine *e, const char *name, const char *defines,
                const char *log)
{
    xm_log(XM_LOG_WARNING,
           "kernel '%s' (%s) does not build on %s; the step uses its next kernel "
           "variant, if it has one:\n%.*s",
           name, defines, e->info.name, log ? beginning_of(log) : 0, log ? log : "");
}

/* Takes ownership of the strings. Without memory the refusal is not recorded, and a later call
 * compiles the kernel again. */
static void
remember_refusal(struct xm_engine *e, char *name, char *defines,
                 const struct xm_error *why)
{
    struct xm_refused_kernel *r = xm_calloc(1, sizeof(*r));
    if (!r) {
        xm_free(name);
        xm_free(defines);
        return;
    }
    *r = (struct xm_refused_kernel){e->refused, name, defines, *why};
    e->refused = r;
}

static const struct xm_refused_kernel *
find_refusal(const struct xm_engine *e, const char *name, const char *defines)
{
    const struct xm_refused_kernel *r = e->refused;
    while (r && (strcmp(r->name, name) != 0 || strcmp(r->defines, defines) != 0))
        r = r->next;
    return r;
}

static enum xm_status
build_kernel(struct xm_engine *e, const char *name, const char *defines,
             struct xm_kernel **out, struct xm_error *err)
{
    char *own_name = xm_strdup(name), *own_defines = xm_strdup(defines);
    struct xm_kernel *k = NULL;
    struct xm_build_report report = {0};
    struct xm_error why = {0};
    enum xm_status status;
    const double start = xm_now();
    if (own_name && own_defines)
        status = xm_defines_check(defines, &why);
    else
        status = xm_no_memory(&why, "kernel '%s'", name);
    xm_error_prefix(&why, "kernel '%s'", name);
    if (status == XM_OK)
        status = e->ops->kernel_create(e, name, defines, &k, &report, &why);
    atomic_fetch_add(&e->build_ns, (uint64_t)(1e9 * (xm_now() - start)));
    if (status == XM_NOT_BUILT)
        warn_of_refusal(e, name, defines, report.log);
    xm_free(report.log);
    if (status == XM_NOT_BUILT) {
        remember_refusal(e, own_name, own_defines, &why);
        own_name = own_defines = NULL;
    }
    if (status != XM_OK) {
        xm_free(own_name);
        xm_free(own_defines);
        xm_fail(err, status, "%s", why.text);
        return xm_engine_settle(e, status, err);
    }
    k->name = own_name;
    k->defines = own_defines;
    k->is_new = report.compiled;
    atomic_fetch_add(report.compiled ? &e->kernels_built : &e->kernels_loaded, 1);
    *out = k;
    return XM_OK;
}

/* The caller holds the kernel lock. */
static enum xm_status
find_or_build(struct xm_engine *e, const char *name, const char *defines,
              struct xm_kernel **out, struct xm_error *err)
{
    *out = xm_engine_find_kernel(e, name, defines);
    if (*out)
        return XM_OK;
    const struct xm_refused_kernel *refusal = find_refusal(e, name, defines);
    if (refusal)
        return xm_fail(err, XM_NOT_BUILT, "%s", refusal->why.text);
    XM_TRY(xm_engine_check_alive(e, err));
    XM_TRY(make_room_for_kernel(e, err));
    XM_TRY(build_kernel(e, name, defines, out, err));
    xm_hash_add(&e->kernel_index, hash_of(name, defines), (uint32_t)e->n_kernels);
    e->kernels[e->n_kernels++] = *out;
    return XM_OK;
}

enum xm_status
xm_engine_kernel(struct xm_engine *engine, const char *name, const char *defines,
                 struct xm_kernel **out, struct xm_error *err)
{
    pthread_mutex_lock(&engine->kernel_lock);
    enum xm_status status = find_or_build(engine, name, defines, out, err);
    pthread_mutex_unlock(&engine->kernel_lock);
    return status;
}

/* Whether `e` has a kernel with the name and defines of `k`. */
static bool
has_kernel(struct xm_engine *e, const struct xm_kernel *k)
{
    pthread_mutex_lock(&e->kernel_lock);
    bool has = xm_engine_find_kernel(e, k->name, k->defines) != NULL;
    pthread_mutex_unlock(&e->kernel_lock);
    return has;
}

enum xm_status
xm_engine_kernel_bytes(struct xm_engine *engine, struct xm_engine *like,
                       xm_kernel_bytes_fn fn, void *ctx, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    if (!engine->ops->kernel_bytes)
        return XM_OK;
    pthread_mutex_lock(&engine->kernel_lock);
    for (size_t i = 0; i < engine->n_kernels && s == XM_OK; i++) {
        struct xm_kernel *k = engine->kernels[i];
        if (!like || has_kernel(like, k))
            s = engine->ops->kernel_bytes(engine, k, fn, ctx, err);
    }
    pthread_mutex_unlock(&engine->kernel_lock);
    return s;
}

static void
destroy_kernel(struct xm_engine *e, struct xm_kernel *k)
{
    char *name = k->name, *defines = k->defines;
    e->ops->kernel_destroy(k);
    xm_free(name);
    xm_free(defines);
}

void
xm_engine_free_kernels(struct xm_engine *e)
{
    for (size_t i = 0; i < e->n_kernels; i++)
        destroy_kernel(e, e->kernels[i]);
    xm_free(e->kernels);
    xm_hash_free(&e->kernel_index);
    while (e->refused) {
        struct xm_refused_kernel *r = e->refused;
        e->refused = r->next;
        xm_free(r->name);
        xm_free(r->defines);
        xm_free(r);
    }
}
