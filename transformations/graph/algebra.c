/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the rules of algebra_rules.c, and adds what follows for every op. */
#include "transformations/graph/algebra_rules.h"

typedef void (*rule_fn)(struct xm_algebra *a);

static const rule_fn rules[XM_OP_COUNT] = {
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    [XM_OP_##id] = xm_algebra_##algebra,
#include "transformations/graph/ops.def"
};

/* ---- what rules say it with ------------------------------------------------------------ */

bool
xm_algebra_next(struct xm_algebra *a)
{
    if (!a->in || a->found || a->k-- > 0)
        return false;
    const struct xm_layout mirrored = {XM_MIRRORED, 0, 1};
    for (uint32_t i = 0; i < a->node->n_in; i++)
        a->in[i] = mirrored;
    for (uint32_t i = 0; i < a->node->n_out; i++)
        a->out[i] = mirrored;
    a->found = true;
    return true;
}

void
xm_algebra_split(struct xm_layout *l, uint32_t dim, int64_t grain)
{
    *l = (struct xm_layout){XM_SPLIT, dim, grain};
}

/* Finds the dimension *at of operand i that is broadcast to dimension d of the result; -1: the
 * operand is repeated along d. False: it is not known. */
static bool
aligned(const struct xm_algebra *a, uint32_t i, uint32_t d, int *at)
{
    const struct xm_shape *result = &a->node->out[0].type.shape;
    const struct xm_shape *s = xm_algebra_shape(a, i);
    *at = (int)d - (int)result->rank + (int)s->rank;
    if (*at >= 0 && xm_dim_is(s->dim[*at], 1))
        *at = -1;
    return *at < 0 || xm_dim_eq(s->dim[*at], result->dim[d]);
}

void
xm_algebra_split_elements(struct xm_algebra *a, uint32_t n, uint32_t but)
{
    const struct xm_shape *result = &a->node->out[0].type.shape;
    int at;
    for (uint32_t d = 0; d + but < result->rank; d++) {
        bool can = !xm_dim_is(result->dim[d], 1);
        for (uint32_t i = 0; i < n && can; i++)
            can = aligned(a, i, d, &at);
        if (!can || !xm_algebra_next(a))
            continue;
        xm_algebra_split(&a->out[0], d, 1);
        for (uint32_t i = 0; i < n; i++)
            if (aligned(a, i, d, &at) && at >= 0)
                xm_algebra_split(&a->in[i], (uint32_t)at, 1);
    }
}

void
xm_algebra_split_rows(struct xm_algebra *a, uint32_t n, uint32_t whole)
{
    const struct xm_shape *s = xm_algebra_shape(a, 0);
    for (uint32_t d = 0; d < s->rank; d++) {
        if (whole >> d & 1 || xm_dim_is(s->dim[d], 1) || !xm_algebra_next(a))
            continue;
        for (uint32_t i = 0; i < n; i++)
            xm_algebra_split(&a->in[i], d, 1);
        for (uint32_t i = 0; i < a->node->n_out; i++)
            xm_algebra_split(&a->out[i], d, 1);
    }
}

/* ---- questions ------------------------------------------------------------------------- */

struct xm_linearity
xm_node_linearity(const struct xm_node *n, uint32_t result)
{
    struct xm_algebra a = {.node = n, .result = result};
    rules[n->op](&a);
    if (xm_op_info(n->op)->flags & (XM_OPF_ELTWISE | XM_OPF_SHAPE_ONLY))
        a.linear.carried = a.linear.alone | a.linear.jointly;
    return a.linear;
}

/* Enumerates an assignment in which these operands, and therefore every result, are partial
 * sums. */
static void
list_partial(struct xm_algebra *a, uint64_t operands)
{
    if (!operands || !xm_algebra_next(a))
        return;
    for (uint32_t i = 0; i < a->node->n_in; i++)
        if (xm_has_operand(operands, i) && xm_algebra_has(a, i))
            a->in[i].kind = XM_PARTIAL;
    for (uint32_t i = 0; i < a->node->n_out; i++)
        a->out[i].kind = XM_PARTIAL;
}

static void
list_linear(struct xm_algebra *a)
{
    struct xm_linearity all = xm_node_linearity(a->node, 0);
    for (uint32_t r = 1; r < a->node->n_out; r++) {
        const struct xm_linearity of = xm_node_linearity(a->node, r);
        all.alone &= of.alone;
        all.jointly = all.jointly == of.jointly ? all.jointly : 0;
    }
    for (uint32_t i = 0; i < a->node->n_in && i < 63; i++)
        list_partial(a, all.alone & UINT64_C(1) << i);
    list_partial(a, all.jointly);
}

bool
xm_node_layouts(const struct xm_node *n, uint32_t k, struct xm_layout *in,
                struct xm_layout *out)
{
    struct xm_algebra a = {.node = n, .k = k, .in = in, .out = out};
    (void)xm_algebra_next(&a); /* all mirrored */
    list_linear(&a);
    if (xm_op_info(n->op)->flags & XM_OPF_ELTWISE)
        xm_algebra_split_elements(&a, n->n_in, 0);
    rules[n->op](&a);
    return a.found;
}
