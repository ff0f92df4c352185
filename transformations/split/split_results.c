/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes values from one rank to another, and gives the results of a split graph to ranks that have
 * no part of it.
 *
 *     ranks with a part:  … ──► results ──► send
 *     rank without one:                      receive ──► the same results
 *
 * A rank without a part has no weights and no states, and takes no part in the exchanges of the
 * others. It has the results because its process chooses the same tokens from them.
 */
#include "transformations/graph/builder.h"
#include "transformations/split/split_plan.h"

static enum xm_status
failure(const struct xm_graph *g, struct xm_error *err)
{
    return xm_fail(err, g->err.status != XM_OK ? g->err.status : XM_INVALID, "%s",
                   g->err.text);
}

enum xm_status
xm_split_add_send(struct xm_builder *b, struct xm_collective *c, struct xm_value *x,
                  uint32_t rank, struct xm_error *err)
{
    const union xm_attr attr = {.collective = {.of = c, .peer = rank}};
    return xm_op_build(b, XM_OP_SEND, &attr, &x, 1) ? XM_OK : failure(b->graph, err);
}

enum xm_status
xm_split_add_receive(struct xm_builder *b, struct xm_collective *c,
                     const struct xm_value *v, uint32_t rank, struct xm_value **out,
                     struct xm_error *err)
{
    struct xm_dim d[XM_MAX_RANK];
    const struct xm_shape *s = &v->type.shape;
    const union xm_attr attr = {
        .collective = {.of = c, .peer = rank, .element = v->type.element}};
    for (uint32_t i = 0; i < s->rank; i++)
        d[i] = xm_dim_import(&b->graph->dims, s->dim[i]);
    struct xm_value *shape = xm_shape_value(b, XM_I64, d, (int)s->rank);
    *out = xm_op_build(b, XM_OP_RECEIVE, &attr, &shape, 1);
    if (!*out)
        return failure(b->graph, err);
    (*out)->stored = v->stored;
    return XM_OK;
}

bool
xm_split_has_state(const struct xm_graph *g)
{
    xm_for_each_node(n, g)
    {
        if (xm_op_info(n->op)->flags & XM_OPF_STATE)
            return true;
    }
    return false;
}

/* Only results of the graph that was split are given: a part may have more (split_show.c). */
enum xm_status
xm_split_give_results(const struct xm_graph *whole, struct xm_graph *part,
                      struct xm_collective *c, const bool *takes, struct xm_error *err)
{
    xm_for_each_node(n, part)
    {
        struct xm_builder b = xm_builder_before(part, n);
        for (uint32_t r = 0; r < c->ranks; r++) {
            if (takes[r] && n->op == XM_OP_RESULT && n->id < whole->next_id)
                XM_TRY(xm_split_add_send(&b, c, xm_in(n, 0), r, err));
        }
    }
    return xm_graph_infer(part) == XM_OK ? XM_OK : failure(part, err);
}

static enum xm_status
receive_results(struct xm_graph *g, struct xm_collective *c, uint32_t from,
                struct xm_error *err)
{
    struct xm_node *next;
    for (struct xm_node *n = g->first; n; n = next) {
        next = n->next;
        if (n->op == XM_OP_ASSIGN)
            xm_node_remove(g, n);
        if (n->op != XM_OP_RESULT)
            continue;
        struct xm_builder b = xm_builder_before(g, n);
        struct xm_value *y;
        XM_TRY(xm_split_add_receive(&b, c, xm_in(n, 0), from, &y, err));
        xm_node_set_in(n, 0, y);
    }
    (void)xm_graph_remove_dead(g);
    return xm_graph_infer(g) == XM_OK ? XM_OK : failure(g, err);
}

enum xm_status
xm_split_take_results(const struct xm_graph *whole, struct xm_collective *c,
                      uint32_t from, struct xm_mapping *owner, struct xm_graph **out,
                      struct xm_error *err)
{
    struct xm_graph *g = NULL;
    XM_TRY(xm_graph_clone(whole, owner, &g, err));
    const enum xm_status s = receive_results(g, c, from, err);
    g->counts_positions = xm_split_has_state(whole);
    if (s == XM_OK)
        *out = g;
    else
        xm_graph_destroy(g);
    return s;
}
