/* SPDX-License-Identifier: Apache-2.0
 *
 * What all primitives share: shapes of operands, the calls through the ops table,
 * scratch.
 */
#include "primitives/primitive.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/memory.h"

const uint8_t xm_roles_1_1[] = {XM_ROLE_IN, XM_ROLE_OUT};
const uint8_t xm_roles_2_1[] = {XM_ROLE_IN, XM_ROLE_IN, XM_ROLE_OUT};
const uint8_t xm_roles_3_1[] = {XM_ROLE_IN, XM_ROLE_IN, XM_ROLE_IN, XM_ROLE_OUT};
const uint8_t xm_roles_1_2[] = {XM_ROLE_IN, XM_ROLE_OUT, XM_ROLE_OUT};

uint64_t
xm_operand_elements(const struct xm_operand *o)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++)
        n *= (uint64_t)o->dim[d];
    return n;
}

uint64_t
xm_operand_rows(const struct xm_operand *o)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d + 1 < o->rank; d++)
        n *= (uint64_t)o->dim[d];
    return n;
}

enum xm_status
xm_primitive_plan(const struct xm_primitive *p, const struct xm_operand *operands,
                  const struct xm_attention_run *sequences, uint64_t *scratch_bytes,
                  struct xm_error *err)
{
    *scratch_bytes = 0;
    return p->ops->plan ? p->ops->plan(p, operands, sequences, scratch_bytes, err)
                        : XM_OK;
}

enum xm_status
xm_primitive_run(const struct xm_primitive *p, const struct xm_operand *operands,
                 const struct xm_run *run, struct xm_error *err)
{
    enum xm_status status = p->ops->run(p, operands, run, err);
    if (status != XM_OK)
        xm_error_prefix(err, "%s", p->ops->name);
    return status;
}

void
xm_primitive_describe(const struct xm_primitive *p, const struct xm_operand *operands,
                      char *out, size_t out_bytes)
{
    if (p->ops->describe)
        p->ops->describe(p, operands, out, out_bytes);
    else
        snprintf(out, out_bytes, "%s", p->ops->name);
}

void
xm_primitive_destroy(struct xm_primitive *p)
{
    if (p)
        p->ops->destroy(p);
}

void
xm_scratch_begin(struct xm_scratch *s, const struct xm_primitive *p,
                 const struct xm_run *run)
{
    memset(s, 0, sizeof(*s));
    s->whole = run->scratch;
    s->kept = run->views;
    s->align = xm_engine_info(p->engine)->base_align;
    if (s->align == 0)
        s->align = 1;
}

static struct xm_buffer *
find_view(const struct xm_kept_views *k, uint64_t offset, uint64_t bytes)
{
    for (int i = 0; i < XM_KEPT_VIEWS; i++) {
        if (k->view[i] && k->offset[i] == offset && xm_buffer_bytes(k->view[i]) == bytes)
            return k->view[i];
    }
    return NULL;
}

/* Keeps a view in place of the oldest one. */
static void
keep_view(struct xm_kept_views *k, uint64_t offset, struct xm_buffer *view)
{
    xm_buffer_unref(k->view[k->oldest]);
    xm_buffer_ref(view);
    k->view[k->oldest] = view;
    k->offset[k->oldest] = offset;
    k->oldest = (k->oldest + 1) % XM_KEPT_VIEWS;
}

void
xm_kept_views_free(struct xm_kept_views *k)
{
    for (int i = 0; i < XM_KEPT_VIEWS; i++)
        xm_buffer_unref(k->view[i]);
    *k = (struct xm_kept_views){0};
}

enum xm_status
xm_scratch_take(struct xm_scratch *s, uint64_t bytes, struct xm_buffer **out,
                struct xm_error *err)
{
    assert(s->n_views < XM_SCRATCH_VIEWS);
    if (bytes == 0)
        bytes = 1;
    uint64_t have = s->whole ? xm_buffer_bytes(s->whole) : 0;
    if (s->used > have || bytes > have - s->used)
        return xm_fail(err, XM_INVALID,
                       "the scratch buffer has %llu bytes, at least %llu are needed",
                       (unsigned long long)have, (unsigned long long)(s->used + bytes));
    *out = s->kept ? find_view(s->kept, s->used, bytes) : NULL;
    if (*out) {
        xm_buffer_ref(*out);
    } else {
        XM_TRY(xm_buffer_view(s->whole, s->used, bytes, out, err));
        if (s->kept)
            keep_view(s->kept, s->used, *out);
    }
    s->views[s->n_views++] = *out;
    s->used += xm_align_up(bytes, s->align);
    return XM_OK;
}

void
xm_scratch_end(struct xm_scratch *s)
{
    while (s->n_views > 0)
        xm_buffer_unref(s->views[--s->n_views]);
}

uint64_t
xm_scratch_bytes(const struct xm_primitive *p, uint64_t bytes)
{
    uint64_t align = xm_engine_info(p->engine)->base_align;
    return xm_align_up(bytes ? bytes : 1, align ? align : 1);
}
