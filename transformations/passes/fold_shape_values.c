/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces integers that are known symbolically by shape_value nodes.
 *
 *     concat(gather(shape_of(x), 0), {1, 256})   ->   shape_value {batch, 1, 256}
 *
 * Shape inference has done the arithmetic; its result replaces the ops that compute it. They no
 * longer keep x alive: a large constant that only a shape_of reads is removed. Sizes that depend on
 * data ("?n") are left.
 */
#include "transformations/pipeline.h"

static bool
is_computable(const struct xm_content *c)
{
    bool symbols = false, negative = false;
    for (uint32_t i = 0; i < c->n; i++) {
        if (xm_dim_is_unknown(c->e[i]))
            return false;
        symbols |= !xm_dim_is_const(c->e[i]);
        negative |= xm_dim_is_const(c->e[i]) && c->e[i].n < 0;
    }
    return xm_content_known(c) && !(symbols && negative);
}

static struct xm_value *
build(struct xm_builder *b, const struct xm_value *v)
{
    int64_t ints[XM_MAX_CONTENT];
    int n = v->type.shape.rank == 0 ? -1 : (int)v->content.n;
    for (uint32_t i = 0; i < v->content.n; i++) {
        if (!xm_dim_is_const(v->content.e[i]))
            return xm_shape_value(b, v->type.element, v->content.e, n);
        ints[i] = v->content.e[i].n;
    }
    return xm_const_ints(b, v->type.element, ints, n);
}

static bool
fold_value(struct xm_graph *g, struct xm_value *v)
{
    if (!v->n_uses || !is_computable(&v->content) || v->type.shape.rank > 1 ||
        (v->type.element != XM_I64 && v->type.element != XM_I32))
        return false;
    struct xm_builder b = xm_builder_before(g, v->node);
    struct xm_value *folded = build(&b, v);
    if (!folded)
        return false;
    xm_value_replace(g, v, folded);
    return true;
}

bool
xm_pass_fold_shape_values(struct xm_graph *g, const struct xm_caps *caps)
{
    (void)caps;
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        bool folded = false;
        if (xm_op_info(n->op)->flags & (XM_OPF_SOURCE | XM_OPF_STATE))
            continue;
        for (uint32_t i = 0; i < n->n_out && n->op != XM_OP_RESULT; i++)
            folded |= fold_value(g, &n->out[i]);
        if (folded)
            xm_node_remove_dead(g, n);
        any |= folded;
        if (g->err.status != XM_OK)
            break;
    }
    return any;
}
