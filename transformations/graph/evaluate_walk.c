/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks through index spaces with strides, and checks that references share. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"

void
xm_walk_begin(struct xm_walk *w, uint32_t rank, const int64_t *dim)
{
    memset(w, 0, sizeof(*w));
    w->rank = rank;
    w->inner = rank ? dim[rank - 1] : 1;
    for (uint32_t i = 0; i < rank; i++)
        w->dim[i] = dim[i];
}

void
xm_walk_add(struct xm_walk *w, int64_t offset, const int64_t *stride)
{
    uint32_t k = w->n++;
    for (uint32_t i = 0; i < w->rank; i++)
        w->stride[k][i] = stride[i];
    w->at[k] = offset;
    w->step[k] = w->rank ? stride[w->rank - 1] : 0;
}

bool
xm_walk_add_broadcast(struct xm_walk *w, const struct xm_tensor *t)
{
    int64_t own[XM_MAX_RANK], stride[XM_WALK_RANK] = {0};
    uint32_t skip = w->rank - t->rank;
    if (t->rank > w->rank)
        return false;
    xm_tensor_strides(t, own);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] != 1 && t->dim[i] != w->dim[skip + i])
            return false;
        stride[skip + i] = t->dim[i] == 1 ? 0 : own[i];
    }
    xm_walk_add(w, 0, stride);
    return true;
}

/* Advances by one in the first `rank` dimensions, the last of them fastest. False: the walk has
 * ended. */
static bool
advance(struct xm_walk *w, uint32_t rank)
{
    if (!w->started) {
        w->started = true;
        for (uint32_t i = 0; i < w->rank; i++) {
            if (w->dim[i] == 0)
                return false;
        }
        return true;
    }
    for (uint32_t i = rank; i-- > 0;) {
        for (uint32_t k = 0; k < w->n; k++)
            w->at[k] += w->stride[k][i];
        if (++w->index[i] < w->dim[i])
            return true;
        for (uint32_t k = 0; k < w->n; k++)
            w->at[k] -= w->stride[k][i] * w->dim[i];
        w->index[i] = 0;
    }
    return false;
}

bool
xm_walk_next(struct xm_walk *w)
{
    return advance(w, w->rank);
}

bool
xm_walk_row(struct xm_walk *w)
{
    return advance(w, w->rank ? w->rank - 1 : 0);
}

void
xm_walk_operands(struct xm_walk *w, const struct xm_eval_call *c, uint32_t n)
{
    xm_walk_begin(w, c->out[0]->rank, c->out[0]->dim);
    for (uint32_t i = 0; i < n; i++)
        (void)xm_walk_add_broadcast(w, c->in[i]);
}

void
xm_walk_copy(struct xm_walk *w, const struct xm_tensor *src, struct xm_tensor *out)
{
    uint64_t done = 0;
    while (xm_walk_next(w))
        xm_tensor_move(out, done++, src, (uint64_t)w->at[0], 1);
}

static bool
is_weight(const struct xm_eval_call *c, uint32_t i)
{
    return xm_in(c->node, i)->node->op == XM_OP_WEIGHT;
}

static enum xm_status
check_operand(const struct xm_eval_call *c, uint32_t i, char class)
{
    const struct xm_tensor *t = c->in[i];
    char kind = (char)tolower((unsigned char)class);
    if (!t && (kind == 'w' || kind == 'g') && is_weight(c, i))
        return XM_OK;
    if (!t && isupper((unsigned char)class))
        return XM_OK;
    if (!t)
        return xm_fail(c->err, XM_INVALID, "operand %u is missing", i);
    bool like_result = kind == 's' || kind == 'g';
    bool want_float = kind == 'f' || kind == 'w' || (like_result && c->out[0]->f);
    if (kind != 'a' && want_float != (t->f != NULL))
        return xm_fail(c->err, XM_INVALID, "operand %u must be of %s type, found %s", i,
                       want_float ? "a float" : "an integer",
                       xm_element_text(t->element));
    return XM_OK;
}

enum xm_status
xm_eval_operands(const struct xm_eval_call *c, const char *classes)
{
    const char *p = classes;
    char class = 'a';
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        if (*p)
            class = *p++;
        XM_TRY(check_operand(c, i, class));
    }
    return XM_OK;
}

enum xm_status
xm_eval_index(const struct xm_eval_call *c, int64_t index, int64_t n, int64_t *out)
{
    *out = index < 0 ? index + n : index;
    if (*out < 0 || *out >= n)
        return xm_fail(c->err, XM_INVALID,
                       "index %" PRId64 " is outside of a dimension of %" PRId64, index,
                       n);
    return XM_OK;
}
