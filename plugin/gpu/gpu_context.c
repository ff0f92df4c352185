/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of the plugin GPU, and remote tensors in them.
 *
 * A context is the device's default context, in which the plugin's engines work, or it is around an
 * OpenCL context of the application. Then it has engines of its own, one for each set of options
 * that models are compiled with. Memory is allocated with the first engine; all engines of one
 * OpenCL context can use it.
 */
#include <string.h>

#include "plugin/gpu/gpu_plugin.h"
#include "runtime/util/memory.h"

struct gpu_context {
    struct xm_context base; /* first */
    const char *plugin;
    uint32_t index, device;
    struct xm_engine *engine;    /* referenced, so that the OpenCL handles stay valid */
    struct xm_shared_cl share;   /* the application's; no context: the device's default */
    struct xm_open_engines open; /* the context's engines, if share.context is set */
};

struct gpu_remote {
    struct xm_remote base;    /* first */
    struct xm_engine *engine; /* the context's; not referenced */
    enum xm_shared_memory kind;
    bool is_foreign; /* the application has allocated the memory */
    struct xm_buffer *buffer;
};

static const struct gpu_context *
as_gpu(const struct xm_context *c)
{
    return (const struct gpu_context *)c;
}

static void
print_pair(struct xm_strbuf *out, const char *key, const char *value)
{
    xm_strbuf_printf(out, "%s%s %s", out->n ? " " : "", key, value);
}

/* Appends a handle as a hexadecimal number; NULL: 0. */
static void
print_handle(struct xm_strbuf *out, const char *key, const void *handle)
{
    struct xm_strbuf value = {0};
    xm_strbuf_printf(&value, handle ? "0x%llx" : "%llu",
                     (unsigned long long)(uintptr_t)handle);
    print_pair(out, key, xm_strbuf_text(&value));
    xm_strbuf_free(&value);
}

/* ---- memory -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    /* the kind of memory that the engine allocates; the kind as which it wraps the application's */
    enum xm_memory_kind made, foreign;
} kinds[] = {
    [XM_SHARED_OCL_BUFFER] = {"OCL_BUFFER", XM_MEMORY_CL, XM_MEMORY_CL},
    [XM_SHARED_USM_USER] = {"USM_USER_BUFFER", XM_MEMORY_USM_SHARED,
                            XM_MEMORY_USM_SHARED},
    [XM_SHARED_USM_HOST] = {"USM_HOST_BUFFER", XM_MEMORY_USM_HOST, XM_MEMORY_USM_SHARED},
    [XM_SHARED_USM_DEVICE] = {"USM_DEVICE_BUFFER", XM_MEMORY_USM_DEVICE,
                              XM_MEMORY_USM_SHARED},
};

static void
remote_params(const struct xm_remote *base, struct xm_strbuf *out, size_t *pairs)
{
    const struct gpu_remote *m = (const struct gpu_remote *)base;
    print_handle(out, "MEM_HANDLE", xm_buffer_native(m->buffer));
    print_handle(out, "OCL_CONTEXT", xm_engine_cl_context(m->engine));
    print_pair(out, "SHARED_MEM_TYPE", kinds[m->kind].name);
    *pairs = 3;
}

/* Allocates the memory of a remote tensor. An empty tensor gets one byte, so that it has a
 * handle. */
static enum xm_status
make_memory(struct gpu_remote *m, uint64_t bytes, struct xm_error *err)
{
    struct xm_buffer *b = NULL;
    XM_TRY(xm_buffer_create_shared(m->engine, kinds[m->kind].made, bytes ? bytes : 1, &b,
                                   err));
    xm_buffer_unref(m->buffer);
    m->buffer = b;
    m->base.bytes = xm_buffer_bytes(b);
    m->base.host = xm_buffer_host_ptr(b);
    return XM_OK;
}

static enum xm_status
take_memory(struct gpu_remote *m, const struct xm_remote_wish *wish, struct xm_error *err)
{
    const uint64_t bytes = wish->bytes ? wish->bytes : 1;
    m->is_foreign = true;
    m->base.bytes = bytes;
    return xm_buffer_wrap(m->engine, kinds[m->kind].foreign, wish->handle, bytes,
                          &m->buffer, err);
}

static enum xm_status
remote_grow(struct xm_remote *base, uint64_t bytes, struct xm_error *err)
{
    struct gpu_remote *m = (struct gpu_remote *)base;
    if (m->is_foreign)
        return xm_fail(err, XM_INVALID,
                       "the tensor uses shared memory, which has %llu bytes, but the new "
                       "shape needs %llu",
                       (unsigned long long)base->bytes, (unsigned long long)bytes);
    return make_memory(m, bytes, err);
}

static void
remote_destroy(struct xm_remote *base)
{
    struct gpu_remote *m = (struct gpu_remote *)base;
    xm_buffer_unref(m->buffer);
    xm_free(m);
}

static const struct xm_remote_ops remote_ops = {
    .params = remote_params,
    .grow = remote_grow,
    .destroy = remote_destroy,
};

enum xm_status
xm_gpu_buffer_of(struct xm_remote *m, struct xm_buffer **out, struct xm_error *err)
{
    if (m->ops != &remote_ops)
        return xm_fail(err, XM_INVALID,
                       "the memory of the tensor belongs to another device");
    *out = ((struct gpu_remote *)m)->buffer;
    return XM_OK;
}

static enum xm_status
context_create_remote(struct xm_context *c, const struct xm_remote_wish *wish,
                      struct xm_remote **out, struct xm_error *err)
{
    struct gpu_remote *m = xm_calloc(1, sizeof(*m));
    if (!m)
        return xm_no_memory(err, "a tensor of the device");
    m->base.ops = &remote_ops;
    m->engine = as_gpu(c)->engine;
    m->kind = wish->kind;
    enum xm_status s =
        wish->handle ? take_memory(m, wish, err) : make_memory(m, wish->bytes, err);
    if (s != XM_OK) {
        xm_free(m);
        return s;
    }
    *out = &m->base;
    return XM_OK;
}

/* ---- contexts ------------------------------------------------------------------------------ */

static void
context_params(const struct xm_context *c, struct xm_strbuf *out, size_t *pairs)
{
    print_pair(out, "CONTEXT_TYPE", "OCL");
    print_handle(out, "OCL_CONTEXT", xm_engine_cl_context(as_gpu(c)->engine));
    print_handle(out, "OCL_QUEUE", as_gpu(c)->share.queue);
    *pairs = 3;
}

static void
context_device_name(const struct xm_context *c, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s.%u", as_gpu(c)->plugin, as_gpu(c)->index);
}

static void
context_destroy(struct xm_context *base)
{
    struct gpu_context *c = (struct gpu_context *)base;
    if (c->share.context)
        xm_open_engines_free(&c->open);
    xm_engine_unref(c->engine);
    xm_free(c);
}

static const struct xm_context_ops context_ops = {
    .params = context_params,
    .device_name = context_device_name,
    .create_remote = context_create_remote,
    .destroy = context_destroy,
};

static enum xm_status
create(const struct xm_gpu_place *place, struct gpu_context **out, struct xm_error *err)
{
    struct gpu_context *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_no_memory(err, "a context");
    c->base = (struct xm_context){.ops = &context_ops, .refs = 1};
    c->plugin = place->plugin;
    c->index = place->index;
    c->device = place->device;
    *out = c;
    return XM_OK;
}

enum xm_status
xm_gpu_context_of(const struct xm_gpu_place *place, struct xm_engine *engine,
                  struct xm_context **out, struct xm_error *err)
{
    struct gpu_context *c = NULL;
    XM_TRY(create(place, &c, err));
    xm_engine_ref(engine);
    c->engine = engine;
    c->base.has_usm = xm_engine_has_usm(engine);
    *out = &c->base;
    return XM_OK;
}

/* Finds or opens an engine in the application's OpenCL context. A queue of the application decides
 * whether the engine's queues are in order. */
static enum xm_status
open_engine(struct gpu_context *c, struct xm_config *config, struct xm_engine **out,
            struct xm_error *err)
{
    if (c->share.queue)
        XM_TRY(xm_config_set(config, "GPU_QUEUE_TYPE",
                             xm_shared_queue_is_out_of_order(&c->share) ? "out_of_order"
                                                                        : "in_order",
                             err));
    return xm_open_engines_get(&c->open, c->device, config, out, err);
}

enum xm_status
xm_gpu_context_share(const struct xm_gpu_place *place, const struct xm_shared_cl *share,
                     struct xm_config *config, struct xm_context **out,
                     struct xm_error *err)
{
    struct gpu_context *c = NULL;
    XM_TRY(create(place, &c, err));
    c->share = *share;
    xm_open_engines_init(&c->open, xm_engine_create_in, &c->share);
    enum xm_status s = open_engine(c, config, &c->engine, err);
    if (s != XM_OK) {
        context_destroy(&c->base);
        return s;
    }
    c->base.has_usm = xm_engine_has_usm(c->engine);
    *out = &c->base;
    return XM_OK;
}

enum xm_status
xm_gpu_context_device(const struct xm_context *c, const char *plugin, uint32_t *index,
                      struct xm_error *err)
{
    if (c->ops != &context_ops || strcmp(as_gpu(c)->plugin, plugin) != 0)
        return xm_fail(err, XM_INVALID,
                       "the remote context belongs to another device than %s", plugin);
    *index = as_gpu(c)->index;
    return XM_OK;
}

enum xm_status
xm_gpu_context_engine(struct xm_context *base, struct xm_open_engines *own,
                      struct xm_config *config, struct xm_engine **out,
                      struct xm_error *err)
{
    struct gpu_context *c = (struct gpu_context *)base;
    if (c->share.context)
        return open_engine(c, config, out, err);
    struct xm_engine *engine = NULL;
    XM_TRY(xm_open_engines_get(own, c->device, config, &engine, err));
    if (xm_engine_cl_context(engine) == xm_engine_cl_context(c->engine)) {
        *out = engine;
        return XM_OK;
    }
    xm_engine_unref(engine);
    return xm_fail(err, XM_INVALID,
                   "the remote context belongs to another core, or its device is lost");
}
