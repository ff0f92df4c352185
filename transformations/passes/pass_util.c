/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicates and helpers on values that several passes share. */
#include "transformations/passes/pass_util.h"

#include "transformations/graph/evaluate.h"

bool
xm_ints_equal(const struct xm_value *v, const int64_t *want, int n)
{
    int64_t have[XM_MAX_CONTENT];
    if (xm_value_const_ints(v, have, XM_MAX_CONTENT) != n)
        return false;
    for (int i = 0; i < n; i++)
        if (have[i] != want[i])
            return false;
    return true;
}

bool
xm_is_axis(const struct xm_value *v, uint32_t rank, int64_t axis)
{
    int64_t have[2];
    if (xm_value_const_ints(v, have, 2) != 1)
        return false;
    return have[0] == axis || have[0] + (int64_t)rank == axis;
}

bool
xm_is_filled(const struct xm_value *v, float number)
{
    uint64_t n;
    if (v->node->op == XM_OP_BROADCAST)
        v = xm_in(v->node, 0);
    enum xm_element e = v->type.element;
    if (v->node->op != XM_OP_CONST || !xm_element_readable(e) ||
        !xm_static_elements(&v->type.shape, &n) || n > XM_SMALL_BYTES)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (xm_load_float(e, v->node->attr.data.bytes, i) != number)
            return false;
    return n > 0;
}

bool
xm_is_row(const struct xm_value *v, int64_t n)
{
    uint64_t elements;
    return v->node->op == XM_OP_CONST && xm_element_is_float(v->type.element) &&
           xm_static_elements(&v->type.shape, &elements) && (int64_t)elements == n &&
           xm_last_dim(v) == n;
}

int64_t
xm_last_dim(const struct xm_value *v)
{
    uint32_t rank = v->type.shape.rank;
    if (rank == 0 || !xm_dim_is_const(v->type.shape.dim[rank - 1]))
        return -1;
    return v->type.shape.dim[rank - 1].n;
}

bool
xm_keeps_rows(const struct xm_node *n)
{
    return n->op == XM_OP_RESHAPE && xm_last_dim(xm_in(n, 0)) > 0 &&
           xm_last_dim(xm_in(n, 0)) == xm_last_dim(&n->out[0]);
}

struct xm_value *
xm_const_of(struct xm_builder *b, struct xm_value *v)
{
    struct xm_graph *g = b->graph;
    struct xm_eval e = {.graph = g};
    struct xm_tensor *t = NULL;
    uint64_t bytes;
    if (!v || xm_evaluate_value(&e, v, &t, &g->err) != XM_OK)
        return NULL;
    void *copy = NULL;
    if (xm_element_bytes(t->element, t->n, &bytes))
        copy = xm_arena_alloc(&g->arena, bytes ? bytes : 1);
    if (copy)
        xm_tensor_to_bytes(t, copy);
    else
        xm_no_memory(&g->err, "a folded constant");
    xm_tensor_destroy(t);
    struct xm_value *folded =
        copy ? xm_const(b, &v->type, (struct xm_data){copy, bytes}) : NULL;
    xm_node_remove_dead(g, v->node);
    return folded;
}

uint32_t
xm_use_index(const struct xm_use *u)
{
    return (uint32_t)(u - u->user->in);
}

static const int64_t head_swap[4] = {0, 2, 1, 3};

/* Whether a reshape exchanges dimensions 1 and 2: [A,1,B,C] and [A,B,1,C] have the same bytes. */
static bool
swaps_one_head(const struct xm_node *n)
{
    const struct xm_shape *from = &xm_in(n, 0)->type.shape, *to = &n->out[0].type.shape;
    return from->rank == 4 && to->rank == 4 &&
           (xm_dim_is(from->dim[1], 1) || xm_dim_is(from->dim[2], 1)) &&
           xm_dim_eq(from->dim[0], to->dim[0]) && xm_dim_eq(from->dim[1], to->dim[2]) &&
           xm_dim_eq(from->dim[2], to->dim[1]) && xm_dim_eq(from->dim[3], to->dim[3]);
}

struct xm_value *
xm_unswapped_heads(const struct xm_value *x)
{
    const struct xm_node *n = x->node;
    bool swaps = n->op == XM_OP_TRANSPOSE && xm_ints_equal(xm_in(n, 1), head_swap, 4);
    swaps |= n->op == XM_OP_RESHAPE && swaps_one_head(n);
    return swaps ? xm_in(n, 0) : NULL;
}

struct xm_value *
xm_swap_heads(struct xm_builder *b, struct xm_value *x)
{
    struct xm_value *before = x ? xm_unswapped_heads(x) : NULL;
    return before ? before : xm_transpose(b, x, head_swap, 4);
}
