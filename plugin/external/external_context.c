/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of external plugins, and memory in them.
 */
#include "plugin/external/external.h"

_Static_assert((int)XM_EXT_BUFFER == (int)XM_SHARED_OCL_BUFFER &&
                   (int)XM_EXT_USM_USER == (int)XM_SHARED_USM_USER &&
                   (int)XM_EXT_USM_HOST == (int)XM_SHARED_USM_HOST &&
                   (int)XM_EXT_USM_DEVICE == (int)XM_SHARED_USM_DEVICE,
               "kinds of memory are ours");

/* ---- memory ------------------------------------------------------------------------ */

void
xm_external_block_ref(struct xm_external_block *b)
{
    if (b)
        xm_refs_add(&b->refs);
}

void
xm_external_block_unref(struct xm_external_block *b)
{
    if (!b || xm_refs_drop(&b->refs) != 0)
        return;
    b->shared->ops.destroy_memory(b->memory);
    xm_free(b);
}

/* Asks the plugin for the memory of a wish. */
static enum xm_status
make_block(const struct xm_external_context *c, const xm_ext_memory_wish *wish,
           struct xm_external_block **out, void **host, struct xm_error *err)
{
    const struct xm_external *x = c->shared;
    xm_ext_error why = {""};
    void *memory = NULL;
    struct xm_external_block *b = xm_calloc(1, sizeof(*b));
    if (!b)
        return xm_no_memory(err, "a tensor");
    const int32_t status = x->ops.create_memory(c->context, wish, &memory, host, &why);
    enum xm_status s = xm_external_status(x, "create_memory", status, &why, err);
    if (s == XM_OK && !memory)
        s = xm_fail(err, XM_DEVICE, "plugin %s: create_memory returned no memory",
                    x->name);
    if (s != XM_OK) {
        xm_free(b);
        return s;
    }
    *b = (struct xm_external_block){1, x, memory};
    *out = b;
    return XM_OK;
}

static struct xm_external_memory *
memory_of(struct xm_remote *m)
{
    return (struct xm_external_memory *)m;
}

static void
memory_params(const struct xm_remote *base, struct xm_strbuf *out, size_t *pairs)
{
    const struct xm_external_block *b = ((const struct xm_external_memory *)base)->block;
    const xm_ext_sink sink = xm_external_sink(out);
    uint32_t n = 0;
    b->shared->ops.memory_params(b->memory, &sink, &n);
    *pairs = n;
}

static enum xm_status
memory_grow(struct xm_remote *base, uint64_t bytes, struct xm_error *err)
{
    struct xm_external_memory *m = memory_of(base);
    const xm_ext_memory_wish wish = {m->kind, NULL, bytes};
    struct xm_external_block *block = NULL;
    void *host = NULL;
    if (m->is_foreign)
        return xm_fail(err, XM_INVALID,
                       "the tensor uses shared memory, which has %llu bytes, but the new "
                       "shape needs %llu",
                       (unsigned long long)base->bytes, (unsigned long long)bytes);
    XM_TRY(make_block((struct xm_external_context *)base->context, &wish, &block, &host,
                      err));
    xm_external_block_unref(m->block);
    m->block = block;
    base->host = host;
    base->bytes = bytes;
    return XM_OK;
}

static void
memory_destroy(struct xm_remote *base)
{
    struct xm_external_memory *m = memory_of(base);
    xm_external_block_unref(m->block);
    xm_free(m);
}

static const struct xm_remote_ops memory_ops = {memory_params, memory_grow,
                                                memory_destroy};

/* ---- contexts ---------------------------------------------------------------------- */

static struct xm_external_context *
self(struct xm_context *c)
{
    return (struct xm_external_context *)c;
}

static void
context_params(const struct xm_context *base, struct xm_strbuf *out, size_t *pairs)
{
    const struct xm_external_context *c = (const struct xm_external_context *)base;
    const xm_ext_sink sink = xm_external_sink(out);
    uint32_t n = 0;
    c->shared->ops.context_params(c->context, &sink, &n);
    *pairs = n;
}

static void
context_device_name(const struct xm_context *base, struct xm_strbuf *out)
{
    const struct xm_external_context *c = (const struct xm_external_context *)base;
    xm_external_print_name(c->shared, c->index, out);
}

static enum xm_status
context_create_remote(struct xm_context *base, const struct xm_remote_wish *wish,
                      struct xm_remote **out, struct xm_error *err)
{
    const xm_ext_memory_wish asked = {(uint32_t)wish->kind, wish->handle, wish->bytes};
    struct xm_external_memory *m = xm_calloc(1, sizeof(*m));
    if (!m)
        return xm_no_memory(err, "a tensor");
    m->base.ops = &memory_ops;
    m->base.bytes = wish->bytes;
    m->kind = (uint32_t)wish->kind;
    m->is_foreign = wish->handle != NULL;
    enum xm_status s = make_block(self(base), &asked, &m->block, &m->base.host, err);
    if (s == XM_OK)
        *out = &m->base;
    else
        xm_free(m);
    return s;
}

static void
context_destroy(struct xm_context *base)
{
    struct xm_external_context *c = self(base);
    if (c->context)
        c->shared->ops.destroy_context(c->context);
    xm_external_unref(c->shared);
    xm_free(c);
}

static const struct xm_context_ops context_ops = {context_params, context_device_name,
                                                  context_create_remote, context_destroy};

enum xm_status
xm_external_create_context(struct xm_external *shared, uint32_t index,
                           const struct xm_context_wish *wish, struct xm_context **out,
                           struct xm_error *err)
{
    const xm_ext_context_wish asked = {wish->cl_context, wish->cl_queue, wish->device};
    xm_ext_error why = {""};
    void *context = NULL;
    struct xm_external_context *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_no_memory(err, "a context");
    *c = (struct xm_external_context){
        .base = {&context_ops, 1, false}, .shared = shared, .index = index};
    xm_external_ref(shared);
    const int32_t status =
        shared->ops.create_context(shared->plugin, index, &asked, &context, &why);
    enum xm_status s = xm_external_status(shared, "create_context", status, &why, err);
    if (s == XM_OK && !context)
        s = xm_fail(err, XM_DEVICE, "plugin %s: create_context returned no context",
                    shared->name);
    if (s == XM_OK) {
        c->context = context;
        *out = &c->base;
    } else {
        context_destroy(&c->base);
    }
    return s;
}
