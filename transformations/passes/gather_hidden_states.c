/* SPDX-License-Identifier: Apache-2.0
 *
 *     result(f(matmul(x, W)))   ->  result(x[:, sampled_tokens_indices, :])
 *     result(x)                 ->  the same, if the result is called last_hidden_state or
 *                                   token_embeddings, as in exports of embedding models
 *
 * x is [B,T,H], W depends on constants only and f is elementwise with constants. x is the result of
 * the final norm: model families call it the last hidden state. All other results are removed;
 * nodes that write states stay.
 */
#include "transformations/passes/gather_hidden_states.h"

#include "transformations/graph/builder.h"
#include "transformations/passes/slice_last_token.h"

static const char *const hidden_names[] = {"last_hidden_state", "token_embeddings"};

/* The result whose name says that it is hidden states of tokens; NULL: there is none. */
static struct xm_node *
find_named(const struct xm_graph *g)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(hidden_names); i++) {
        const struct xm_value *v = xm_graph_find_value(g, hidden_names[i]);
        if (v && v->node->op == XM_OP_RESULT && xm_in(v->node, 0)->type.shape.rank == 3)
            return v->node;
    }
    return NULL;
}

/* Whether v depends on constants only: it is a weight, or computed by the ops that expand one.
 * These are few: at most *most nodes are visited, which bounds the time for any graph. */
static bool
is_of_constants(const struct xm_value *v, uint32_t *most)
{
    const struct xm_node *n = v->node;
    if (*most == 0 || n->op == XM_OP_PARAMETER ||
        (xm_op_info(n->op)->flags & XM_OPF_STATE))
        return false;
    --*most;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!xm_is_none(xm_in(n, i)) && !is_of_constants(xm_in(n, i), most))
            return false;
    return true;
}

/* The hidden states that are multiplied by the language head of the first result that has one;
 * NULL: there are none. */
static struct xm_value *
find_factor(const struct xm_graph *g)
{
    xm_for_each_node(n, g)
    {
        uint32_t most = 256;
        const struct xm_node *head =
            n->op == XM_OP_RESULT ? xm_language_head(xm_in(n, 0)) : NULL;
        if (head && is_of_constants(xm_in(head, 1), &most))
            return xm_in(head, 0);
    }
    return NULL;
}

static struct xm_value *
find_hidden(const struct xm_graph *g)
{
    const struct xm_node *named = find_named(g);
    return named ? xm_in(named, 0) : find_factor(g);
}

bool
xm_pass_gather_hidden_states(struct xm_graph *g)
{
    struct xm_value *x = find_hidden(g);
    if (!x) {
        xm_fail(&g->err, XM_UNSUPPORTED,
                "the model offers no hidden states: no result is a product of hidden "
                "states with a weight, and none is named last_hidden_state");
        return false;
    }
    struct xm_builder end = xm_builder_at_end(g);
    const struct xm_value *result = xm_result(&end, hidden_names[0], x);
    if (!result)
        return false;
    struct xm_builder b = xm_builder_before(g, result->node);
    struct xm_value *rows = xm_convert(&b, xm_sampled_rows(g, x, result->node), XM_F32);
    if (!rows)
        return false;
    xm_node_set_in(result->node, 0, rows);
    xm_for_each_node_safe(n, g)
    {
        if (n->op == XM_OP_RESULT && n != result->node)
            xm_node_remove(g, n);
    }
    xm_graph_remove_dead(g);
    return xm_graph_infer(g) == XM_OK;
}

bool
xm_graph_gives_hidden_states(const struct xm_graph *g)
{
    return find_named(g) != NULL;
}

/* The number of rows of the smallest table that v indexes, directly or after ops that keep its
 * numbers. */
static uint64_t
smallest_table(const struct xm_value *v, int depth)
{
    uint64_t least = UINT64_MAX;
    for (const struct xm_use *u = v->uses; u && depth > 0; u = u->next) {
        const struct xm_node *n = u->user;
        const struct xm_shape *table =
            n->op == XM_OP_GATHER && xm_in(n, 1) == v ? &xm_in(n, 0)->type.shape : NULL;
        uint64_t rows = UINT64_MAX;
        if (table && table->rank == 2 && xm_dim_is_const(table->dim[0]))
            rows = (uint64_t)table->dim[0].n;
        else if (n->op == XM_OP_CONVERT || n->op == XM_OP_RESHAPE)
            rows = smallest_table(&n->out[0], depth - 1);
        least = rows < least ? rows : least;
    }
    return least;
}

uint64_t
xm_graph_vocabulary(const struct xm_graph *g)
{
    enum { MOST_STEPS = 4 };
    const struct xm_node *ids = xm_graph_parameter(g, "input_ids");
    return ids ? smallest_table(&ids->out[0], MOST_STEPS) : UINT64_MAX;
}
