/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one node of a model with the host's reference, for a plugin that cannot run it.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/external/external.h"
#include "transformations/graph/evaluate.h"

struct call {
    const struct xm_node *node;
    struct xm_tensor **in, **out;
    struct xm_error err;
};

/* Whether the tensor has the number of bytes of its shape and element type, which must be known. */
static bool
has_its_bytes(const xm_ext_tensor *t)
{
    uint64_t n = 1, bytes = 0;
    if (t->element >= XM_ELEMENT_COUNT || t->rank > XM_EXT_RANK)
        return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || !xm_mul_size(n, (uint64_t)t->dim[i], &n))
            return false;
    }
    return xm_element_bytes((enum xm_element)t->element, n, &bytes) &&
           bytes == t->bytes && (t->data || bytes == 0);
}

/* Evaluates a constant operand for which the plugin passed no data. */
static enum xm_status
take_constant(struct call *c, uint32_t i)
{
    const struct xm_value *v = xm_in(c->node, i);
    struct xm_tensor *results[1];
    if (v->node->op == XM_OP_WEIGHT && xm_eval_takes_weight(c->node->op, i))
        /* the operation reads it row by row, so that it is never expanded */
        return XM_OK;
    XM_TRY(xm_evaluate_node(v->node, NULL, results, NULL, NULL, 0, &c->err));
    c->in[i] = results[0];
    return XM_OK;
}

static enum xm_status
take_operand(struct call *c, uint32_t i, const xm_ext_tensor *t)
{
    const struct xm_value *v = xm_in(c->node, i);
    if (xm_is_none(v))
        return XM_OK;
    if (xm_value_is_const(v) && (!t || !t->data))
        return take_constant(c, i);
    if (!t || !has_its_bytes(t))
        return xm_fail(&c->err, XM_INVALID,
                       "operand %u of %s '%s' does not have the number of bytes that its "
                       "shape needs",
                       i, xm_op_info(c->node->op)->text, c->node->name);
    return xm_tensor_from_bytes(&c->in[i], (enum xm_element)t->element, t->rank, t->dim,
                                t->data, &c->err);
}

static enum xm_status
give_result(struct call *c, const struct xm_tensor *t, xm_ext_tensor *out,
            void *(*alloc)(void *, uint64_t), void *ctx)
{
    uint64_t bytes = 0;
    if (!xm_element_bytes(t->element, t->n, &bytes))
        return xm_fail(&c->err, XM_INVALID, "a result without a size");
    out->data = alloc(ctx, bytes ? bytes : 1);
    if (!out->data)
        return xm_no_memory(&c->err, "a result of %s '%s'", xm_op_info(c->node->op)->text,
                            c->node->name);
    out->element = (uint32_t)t->element;
    out->rank = t->rank;
    memcpy(out->dim, t->dim, sizeof(out->dim));
    out->bytes = bytes;
    xm_tensor_to_bytes(t, out->data);
    return XM_OK;
}

static enum xm_status
run(struct call *c, const xm_ext_tensor *in, xm_ext_tensor *out,
    void *(*alloc)(void *, uint64_t), void *ctx)
{
    const struct xm_node *n = c->node;
    for (uint32_t i = 0; i < n->n_in; i++)
        XM_TRY(take_operand(c, i, in ? &in[i] : NULL));
    XM_TRY(xm_evaluate_node(n, (const struct xm_tensor *const *)c->in, c->out, NULL, NULL,
                            0, &c->err));
    for (uint32_t i = 0; i < n->n_out; i++)
        XM_TRY(give_result(c, c->out[i], &out[i], alloc, ctx));
    return XM_OK;
}

int32_t
xm_external_run_node(const xm_ext_model *m, uint32_t node, const xm_ext_tensor *in,
                     xm_ext_tensor *out, void *(*alloc)(void *ctx, uint64_t bytes),
                     void *ctx, xm_ext_error *err)
{
    struct call c = {.err = {XM_OK, ""}};
    if (node >= m->n) {
        snprintf(err->text, sizeof(err->text), "the model has %u nodes, there is no %u",
                 m->n, node);
        return XM_EXT_INVALID;
    }
    c.node = m->nodes[node];
    memset(out, 0, c.node->n_out * sizeof(*out));
    c.in = xm_calloc(c.node->n_in + 1u, sizeof(struct xm_tensor *));
    c.out = xm_calloc(c.node->n_out + 1u, sizeof(struct xm_tensor *));
    enum xm_status s = c.in && c.out ? run(&c, in, out, alloc, ctx)
                                     : xm_fail(&c.err, XM_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; c.in && i < c.node->n_in; i++)
        xm_tensor_destroy(c.in[i]);
    for (uint32_t i = 0; c.out && i < c.node->n_out; i++)
        xm_tensor_destroy(c.out[i]);
    xm_free(c.in);
    xm_free(c.out);
    if (s == XM_OK)
        return XM_EXT_OK;
    snprintf(err->text, sizeof(err->text), "%s", c.err.text);
    return xm_external_is_status((int32_t)s) ? (int32_t)s : XM_EXT_UNSUPPORTED;
}
