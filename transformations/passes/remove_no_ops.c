/* SPDX-License-Identifier: Apache-2.0
 *
 * f(x) -> x, for ops that change nothing.
 *
 * A reshape, broadcast, tile or forward slice whose result provably has the operand's shape; a
 * transpose that keeps the order; a convert to the same element type; a concat of one value.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

static bool
keeps_order(const struct xm_node *n)
{
    int64_t order[XM_MAX_RANK];
    int rank = xm_value_const_ints(xm_in(n, 1), order, XM_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (order[i] != i)
            return false;
    return rank > 0;
}

static bool
steps_forwards(const struct xm_node *n)
{
    int64_t step[XM_MAX_RANK];
    uint32_t operand = 3;
    if (n->n_in <= operand)
        return n->op == XM_OP_STRIDED_SLICE;
    int count = xm_value_const_ints(xm_in(n, operand), step, XM_MAX_RANK);
    for (int i = 0; i < count; i++)
        if (step[i] != 1)
            return false;
    return count >= 0;
}

static bool
always(const struct xm_node *n)
{
    (void)n;
    return true;
}

/* An op is a no-op if the type does not change and the condition holds. */
static const struct {
    enum xm_op op;
    bool (*condition)(const struct xm_node *n);
} no_ops[] = {
    /* clang-format off */
    { XM_OP_RESHAPE,       always         },
    { XM_OP_SQUEEZE,       always         },
    { XM_OP_UNSQUEEZE,     always         },
    { XM_OP_BROADCAST,     always         },
    { XM_OP_TILE,          always         },
    { XM_OP_CONVERT,       always         },
    { XM_OP_CONVERT_LIKE,  always         },
    { XM_OP_TRANSPOSE,     keeps_order    },
    { XM_OP_SLICE,         steps_forwards },
    { XM_OP_STRIDED_SLICE, steps_forwards },
    { XM_OP_CONCAT,        always         },
    /* clang-format on */
};

static bool
is_no_op(const struct xm_node *n)
{
    if (n->op == XM_OP_CONCAT && n->n_in != 1)
        return false;
    for (size_t i = 0; i < XM_ARRAY_LEN(no_ops); i++) {
        if (no_ops[i].op != n->op)
            continue;
        const struct xm_type *in = &xm_in(n, 0)->type, *out = &n->out[0].type;
        return in->element == out->element && xm_shape_eq(&in->shape, &out->shape) &&
               no_ops[i].condition(n);
    }
    return false;
}

bool
xm_pass_remove_no_ops(struct xm_graph *g, const struct xm_caps *caps)
{
    (void)caps;
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        if (!n->out[0].n_uses || !is_no_op(n))
            continue;
        xm_value_replace(g, &n->out[0], xm_in(n, 0));
        xm_node_remove_dead(g, n);
        any = true;
    }
    return any;
}
