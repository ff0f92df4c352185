/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over a whole graph: restoring topological order, and recomputing every type.
 *
 * The sort is a depth-first search along operands, without recursion, because graphs are deep. */
#include "transformations/graph/graph.h"
#include "transformations/graph/infer.h"

/* ---- sorting ----------------------------------------------------------------------- */

enum mark { UNLISTED, UNSEEN, OPEN, DONE };

struct sort {
    struct xm_graph *g;
    unsigned char *mark;    /* state of the visit, by node id */
    struct xm_node **stack; /* path of the search */
    uint32_t *next_in;      /* next operand to visit, for each node of the path   */
    uint32_t depth;
    struct xm_node *first, *last; /* the new order */
    struct xm_error *err;
};

static void
sort_emit(struct sort *s, struct xm_node *n)
{
    n->before = s->last;
    n->next = NULL;
    *(s->last ? &s->last->next : &s->first) = n;
    s->last = n;
    s->mark[n->id] = DONE;
}

static enum xm_status
sort_visit(struct sort *s, struct xm_node *root)
{
    s->stack[0] = root;
    s->next_in[0] = 0;
    s->depth = 1;
    s->mark[root->id] = OPEN;
    while (s->depth > 0) {
        struct xm_node *n = s->stack[s->depth - 1];
        uint32_t i = s->next_in[s->depth - 1]++;
        if (i >= n->n_in) {
            sort_emit(s, n);
            s->depth--;
            continue;
        }
        struct xm_node *maker = n->in[i].value->node;
        if (maker->op == XM_OP_NONE || s->mark[maker->id] == DONE)
            continue;
        if (s->mark[maker->id] == UNLISTED)
            return xm_fail(
                s->err, XM_INVALID, "%%%u (%s) reads %%%u (%s), which was removed", n->id,
                xm_op_info(n->op)->text, maker->id, xm_op_info(maker->op)->text);
        if (s->mark[maker->id] == OPEN)
            return xm_fail(s->err, XM_INVALID, "the graph has a cycle through %%%u (%s)",
                           maker->id, xm_op_info(maker->op)->text);
        s->mark[maker->id] = OPEN;
        s->stack[s->depth] = maker;
        s->next_in[s->depth++] = 0;
    }
    return XM_OK;
}

/* Sorts. Nodes are visited in their present order, so that a sorted graph does not change. The new
 * list uses the links of the old one, hence the copy in `nodes`. */
static enum xm_status
sort_all(struct sort *s, struct xm_node **nodes)
{
    uint32_t n = 0;
    enum xm_status status = XM_OK;
    xm_for_each_node(node, s->g)
    {
        nodes[n++] = node;
        s->mark[node->id] = UNSEEN;
    }
    for (uint32_t i = 0; i < n && status == XM_OK; i++)
        if (s->mark[nodes[i]->id] == UNSEEN)
            status = sort_visit(s, nodes[i]);
    if (status != XM_OK) { /* restore the old order     */
        s->first = s->last = NULL;
        for (uint32_t i = 0; i < n; i++)
            sort_emit(s, nodes[i]);
    }
    s->g->first = s->first;
    s->g->last = s->last;
    return status;
}

enum xm_status
xm_graph_sort(struct xm_graph *g, struct xm_error *err)
{
    struct sort s = {.g = g, .err = err};
    size_t n = (size_t)g->n_nodes + 1;
    struct xm_arena scratch = {0};
    struct xm_node **nodes = xm_arena_alloc(&scratch, n * sizeof(struct xm_node *));
    s.mark = xm_arena_alloc(&scratch, (size_t)g->next_id + 1);
    s.stack = xm_arena_alloc(&scratch, n * sizeof(struct xm_node *));
    s.next_in = xm_arena_alloc(&scratch, n * sizeof(*s.next_in));
    enum xm_status status =
        nodes && s.mark && s.stack && s.next_in
            ? sort_all(&s, nodes)
            : xm_fail(err, XM_NO_MEMORY, "out of memory to sort a graph of %u nodes",
                      g->n_nodes);
    xm_arena_free(&scratch);
    return status;
}

/* ---- types ------------------------------------------------------------------------- */

enum xm_status
xm_graph_infer(struct xm_graph *g)
{
    xm_for_each_node(n, g)
    {
        enum xm_status status = xm_infer_node(g, n, &g->arena, n->out, &g->err);
        if (status != XM_OK) {
            xm_error_prefix(&g->err, "%%%u (%s%s%s)", n->id, xm_op_info(n->op)->text,
                            *n->name ? " " : "", n->name);
            return status;
        }
    }
    return XM_OK;
}
