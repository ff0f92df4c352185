/* SPDX-License-Identifier: Apache-2.0
 *
 * f(constants) -> constant, for small results.
 *
 * A subgraph of constants is evaluated as a whole by the host reference, so no intermediate value
 * is rounded to its element type. All values in it must be small: weights, and constants above the
 * limit, are never expanded.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

static bool
is_small(const struct xm_value *v)
{
    uint64_t n, bytes;
    return xm_static_elements(&v->type.shape, &n) && n <= XM_SMALL_BYTES &&
           xm_element_bytes(v->type.element, n, &bytes) && bytes <= XM_SMALL_BYTES;
}

/* Whether a node can be evaluated: it and all nodes that it depends on are constant and small.
 * constant[]: the answers for earlier nodes. */
static bool
is_constant(const struct xm_node *n, const bool *constant)
{
    if (n->op == XM_OP_CONST)
        return is_small(&n->out[0]) && xm_element_readable(n->out[0].type.element);
    if ((xm_op_info(n->op)->flags & (XM_OPF_SOURCE | XM_OPF_STATE)) ||
        n->op == XM_OP_RESULT)
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!is_small(&n->out[i]) || !xm_element_writable(n->out[i].type.element))
            return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!xm_is_none(xm_in(n, i)) && !constant[xm_in(n, i)->node->id])
            return false;
    return true;
}

static bool
has_other_user(const struct xm_value *v, const bool *constant)
{
    for (const struct xm_use *u = v->uses; u; u = u->next)
        if (!constant[u->user->id])
            return true;
    return false;
}

static bool
fold_value(struct xm_graph *g, struct xm_value *v)
{
    struct xm_builder b = xm_builder_before(g, v->node);
    struct xm_value *folded = xm_const_of(&b, v);
    if (folded)
        xm_value_replace(g, v, folded);
    return folded != NULL;
}

/* Replaces the last values of each constant subgraph, those that other nodes read. */
static bool
fold_ends(struct xm_graph *g, const bool *constant, uint32_t n_known)
{
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        if (n->id >= n_known || !constant[n->id] || n->op == XM_OP_CONST)
            continue;
        for (uint32_t i = 0; i < n->n_out && g->err.status == XM_OK; i++)
            if (has_other_user(&n->out[i], constant))
                any |= fold_value(g, &n->out[i]);
        xm_node_remove_dead(g, n);
    }
    return any;
}

bool
xm_pass_fold_constants(struct xm_graph *g, const struct xm_caps *caps)
{
    (void)caps;
    uint32_t n_known = g->next_id;
    bool *constant = xm_calloc(n_known ? n_known : 1, sizeof(bool));
    if (!constant) {
        xm_fail(&g->err, XM_NO_MEMORY, "out of memory while folding constants");
        return false;
    }
    xm_for_each_node(n, g) constant[n->id] = is_constant(n, constant);
    bool any = fold_ends(g, constant, n_known);
    xm_free(constant);
    return any;
}
