/* SPDX-License-Identifier: Apache-2.0
 *
 *     result(f(matmul(x, W)))  ->  result(f(matmul(x[:, -1:, :], W)))
 *     result(f(matmul(x, W)))  ->  result(f(matmul(x[:, sampled_tokens_indices, :], W)))
 *
 * x is [B,T,H] and f is elementwise with constants (for example soft-capping). The head of a
 * language model has the largest matrix, and text generation reads few rows of its result.
 */
#include "transformations/passes/slice_last_token.h"

#include <string.h>

#include "transformations/graph/builder.h"
#include "transformations/graph/symbols.h"

struct xm_node *
xm_language_head(struct xm_value *v)
{
    while (v->node->op != XM_OP_MATMUL) {
        struct xm_value *next = NULL;
        if (!(xm_op_info(v->node->op)->flags & XM_OPF_ELTWISE) || v->n_uses != 1)
            return NULL;
        for (uint32_t i = 0; i < v->node->n_in; i++) {
            struct xm_value *in = xm_in(v->node, i);
            if (xm_value_is_const(in))
                continue;
            if (next)
                return NULL;
            next = in;
        }
        if (!next)
            return NULL;
        v = next;
    }
    bool per_token = v->type.shape.rank == 3 && !v->node->attr.matmul.transpose_a &&
                     xm_in(v->node, 0)->type.shape.rank == 3 && v->n_uses == 1;
    return per_token ? v->node : NULL;
}

/* x[:, -1:, :] */
static struct xm_value *
last_token(struct xm_graph *g, struct xm_node *head)
{
    struct xm_builder b = xm_builder_before(g, head);
    const int64_t start = -1, stop = INT64_MAX, step = 1, axis = 1;
    struct xm_value *in[5] = {xm_in(head, 0), xm_const_ints(&b, XM_I64, &start, 1),
                              xm_const_ints(&b, XM_I64, &stop, 1),
                              xm_const_ints(&b, XM_I64, &step, 1),
                              xm_const_ints(&b, XM_I64, &axis, 1)};
    return xm_op_build(&b, XM_OP_SLICE, NULL, in, 5);
}

struct xm_value *
xm_sampled_rows(struct xm_graph *g, struct xm_value *x, struct xm_node *place)
{
    struct xm_builder first = xm_builder_before(g, g->first),
                      b = xm_builder_before(g, place);
    const int64_t axis = 1;
    struct xm_type type = {.element = XM_I64, .shape = {.rank = 1}};
    struct xm_value *indices = NULL;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_PARAMETER && strcmp(n->name, XM_SAMPLED_TOKENS) == 0)
            indices = &n->out[0];
    }
    type.shape.dim[0] = xm_dim_symbol(&g->dims, XM_SYMBOL_SAMPLES);
    first.name = XM_SAMPLED_TOKENS;
    if (!indices)
        indices = xm_parameter(&first, XM_SAMPLED_TOKENS, &type);
    struct xm_value *in[3] = {x, indices, xm_const_ints(&b, XM_I64, &axis, -1)};
    return xm_op_build(&b, XM_OP_GATHER, NULL, in, 3);
}

static struct xm_value *
sampled_tokens(struct xm_graph *g, struct xm_node *head)
{
    return xm_sampled_rows(g, xm_in(head, 0), head);
}

/* Whether x has a row for each token: its rows have not been selected yet. */
static bool
has_all_tokens(const struct xm_value *x)
{
    const struct xm_dim rows = x->type.shape.dim[1];
    return !xm_dim_is_const(rows) && !xm_dim_has_symbol(rows, XM_SYMBOL_SAMPLES);
}

static bool
replace_operand(struct xm_node *head, struct xm_value *rows)
{
    if (rows)
        xm_node_set_in(head, 0, rows);
    return rows != NULL;
}

static bool
choose_rows(struct xm_graph *g,
            struct xm_value *(*rows)(struct xm_graph *g, struct xm_node *head))
{
    bool progress = false;
    xm_for_each_node(n, g)
    {
        struct xm_node *head =
            n->op == XM_OP_RESULT ? xm_language_head(xm_in(n, 0)) : NULL;
        if (head && has_all_tokens(xm_in(head, 0)))
            progress |= replace_operand(head, rows(g, head));
    }
    if (progress)
        xm_graph_infer(g);
    return progress;
}

bool
xm_pass_slice_last_token(struct xm_graph *g)
{
    return choose_rows(g, last_token);
}

bool
xm_pass_gather_sampled_tokens(struct xm_graph *g)
{
    return choose_rows(g, sampled_tokens);
}
