/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations in the form that their reader multiplies: whoever makes a value writes its first rows
 * so, too, into a value beside it, and the reader takes those instead of preparing them in a launch
 * of its own (primitives/form.h). Readers are asked before there are any: what they read follows
 * from the device and their weights.
 */
#include "plugin/lower.h"
#include "primitives/linear/linear.h"

static bool
is_relabelling(enum xm_op op)
{
    return op == XM_OP_RESHAPE || op == XM_OP_SQUEEZE || op == XM_OP_UNSQUEEZE;
}

/* The weight that a node multiplies operand 0 with; NULL: none. */
static const struct xm_weight *
weight_of(const struct xm_node *n)
{
    uint32_t operand = 0;
    if (n->op == XM_OP_MATMUL && n->attr.matmul.transpose_b &&
        !n->attr.matmul.transpose_a)
        operand = 1;
    else if (n->op == XM_OP_LINEAR)
        operand = XM_LINEAR_W;
    const struct xm_node *w = operand ? xm_in(n, operand)->node : NULL;
    return w && w->op == XM_OP_WEIGHT ? &w->attr.weight : NULL;
}

/* How node n reads v. */
static struct xm_rows_form
form_of_reader(struct xm_lower *l, const struct xm_node *n, const struct xm_value *v,
               uint64_t cols)
{
    const struct xm_weight *w = weight_of(n);
    const struct xm_rows_form plain = {XM_FORM_ROWS, 0, 0};
    if (!w || xm_in(n, 0) != v || w->experts != 1 || w->cols != cols)
        return plain;
    return xm_linear_reads(l->p->engine, w, xm_lower_element(v));
}

struct xm_rows_form
xm_lower_form_wanted(struct xm_lower *l, const struct xm_value *v, uint64_t cols)
{
    struct xm_rows_form f = {XM_FORM_ROWS, 0, 0};
    for (const struct xm_use *u = v->uses; u && !xm_rows_are_prepared(&f); u = u->next)
        f = is_relabelling(u->user->op) ? xm_lower_form_wanted(l, &u->user->out[0], cols)
                                        : form_of_reader(l, u->user, v, cols);
    return f;
}

enum xm_status
xm_lower_prepared(struct xm_lower *l, uint32_t of, const struct xm_rows_form *form,
                  uint64_t cols, uint32_t *out)
{
    struct xm_shape shape = {.rank = 2};
    shape.dim[0] = xm_dim_const(XM_PREPARED_ROWS);
    shape.dim[1] = xm_dim_const((int64_t)xm_prepared_words(form, cols));
    XM_TRY(xm_lower_new_value(l, NULL, XM_I32, &shape, XM_PLACE_ACTIVATION, out));
    struct xm_program_value *v = &l->p->values[xm_program_root(l->p, of)];
    v->prepared = *out;
    v->prepared_cols = cols;
    v->form = *form;
    return XM_OK;
}

uint32_t
xm_lower_prepared_of(const struct xm_lower *l, uint32_t id, uint64_t cols,
                     struct xm_rows_form *form)
{
    const struct xm_program_value *v = &l->p->values[xm_program_root(l->p, id)];
    if (!xm_rows_are_prepared(&v->form) || v->prepared_cols != cols)
        return XM_NO_VALUE;
    *form = v->form;
    return v->prepared;
}
