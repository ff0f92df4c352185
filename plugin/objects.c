/* SPDX-License-Identifier: Apache-2.0
 *
 * Lifetimes of plugins' objects: requests, sequences and batches hold a reference to their compiled
 * model, remote memory holds one to its context.
 */
#include "plugin/plugin.h"

/* ---- compiled models and requests ---- */

void
xm_compiled_ref(struct xm_compiled *c)
{
    xm_refs_add(&c->refs);
}

void
xm_compiled_unref(struct xm_compiled *c)
{
    if (c && xm_refs_drop(&c->refs) == 0)
        c->ops->destroy(c);
}

enum xm_status
xm_compiled_create_request(struct xm_compiled *c, struct xm_infer **out,
                           struct xm_error *err)
{
    XM_TRY(c->ops->create_request(c, out, err));
    (*out)->compiled = c;
    xm_compiled_ref(c);
    return XM_OK;
}

void
xm_infer_destroy(struct xm_infer *r)
{
    if (!r)
        return;
    struct xm_compiled *c = r->compiled;
    r->ops->destroy(r);
    xm_compiled_unref(c);
}

/* ---- contexts ---- */

void
xm_context_ref(struct xm_context *c)
{
    xm_refs_add(&c->refs);
}

void
xm_context_unref(struct xm_context *c)
{
    if (c && xm_refs_drop(&c->refs) == 0)
        c->ops->destroy(c);
}

enum xm_status
xm_context_create_remote(struct xm_context *c, const struct xm_remote_wish *wish,
                         struct xm_remote **out, struct xm_error *err)
{
    XM_TRY(c->ops->create_remote(c, wish, out, err));
    (*out)->context = c;
    xm_context_ref(c);
    return XM_OK;
}

void
xm_remote_destroy(struct xm_remote *m)
{
    if (!m)
        return;
    struct xm_context *c = m->context;
    m->ops->destroy(m);
    xm_context_unref(c);
}

/* ---- sequences ---- */

static enum xm_status
no_sequences(struct xm_error *err)
{
    return xm_fail(err, XM_UNSUPPORTED, "this device does not support sequences");
}

enum xm_status
xm_compiled_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                            struct xm_error *err)
{
    if (!c->ops->create_sequence)
        return no_sequences(err);
    XM_TRY(c->ops->create_sequence(c, out, err));
    (*out)->compiled = c;
    xm_compiled_ref(c);
    return XM_OK;
}

enum xm_status
xm_compiled_fork_sequence(struct xm_sequence *s, struct xm_sequence **out,
                          struct xm_error *err)
{
    XM_TRY(s->ops->fork(s, out, err));
    (*out)->compiled = s->compiled;
    xm_compiled_ref(s->compiled);
    return XM_OK;
}

void
xm_compiled_destroy_sequence(struct xm_sequence *s)
{
    if (!s)
        return;
    struct xm_compiled *c = s->compiled;
    s->ops->destroy(s);
    xm_compiled_unref(c);
}

enum xm_status
xm_compiled_create_batch(struct xm_compiled *c, struct xm_batch **out,
                         struct xm_error *err)
{
    if (!c->ops->create_batch)
        return no_sequences(err);
    XM_TRY(c->ops->create_batch(c, out, err));
    (*out)->compiled = (*out)->control->compiled = c;
    xm_compiled_ref(c);
    return XM_OK;
}

void
xm_compiled_destroy_batch(struct xm_batch *b)
{
    if (!b)
        return;
    struct xm_compiled *c = b->compiled;
    b->ops->destroy(b);
    xm_compiled_unref(c);
}
