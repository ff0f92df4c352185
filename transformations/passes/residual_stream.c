/* SPDX-License-Identifier: Apache-2.0
 *
 * A sum r + f is in the residual stream if f is computed from r through a matrix product:
 *
 *     h' = h + W norm(h)       h and h' are in the stream, and the values from which h comes by
 *                              reshapes and scalings
 *     y  = x W0 + x W1         is not: neither summand is computed from the other
 *
 * algebra.h tells which operands a result "carries": r is such an operand of the sum, as is the
 * operand of a reshape or scaling. A search from f goes back no further than to r. All searches
 * together visit a bounded number of operands; sums after that are not recognised.
 */
#include "transformations/passes/residual_stream.h"

#include "transformations/graph/algebra.h"

enum {
    MOST_WORK = 1 << 24,
    FORMS = 8 /* values before reshapes and scalings of r that count as r */
};

/* Data of a node; `r` is of a value. */
struct about {
    const struct xm_node *node;
    uint32_t place;   /* position in the graph's order                                 */
    uint32_t r;       /* for a sum: number of the operand r, plus 1; 0: not a sum      */
    uint32_t goal;    /* last search that had this node as a goal                      */
    uint32_t seen[2]; /* last search that visited it: before a product, after one      */
};

struct search {
    const struct xm_graph *g;
    bool *stream;
    struct about *of; /* by the id of a node, or the number of a value  */
    uint32_t *stack;  /* nodes to visit: 2 * id + whether a product was passed */
    uint32_t number, depth;
    uint64_t work;
};

static uint32_t
number_of(const struct xm_value *v)
{
    return v->node->id + v->index;
}

/* Whether a result carries the sum in operand i, a computed float value. */
static bool
carries(const struct xm_linearity *result, const struct xm_node *n, uint32_t i)
{
    const struct xm_value *v = xm_in(n, i);
    return xm_has_operand(result->carried, i) && !xm_is_none(v) &&
           !xm_value_is_const(v) && xm_element_is_float(v->type.element);
}

/* ---- r + f(r) ---------------------------------------------------------------------------- */

/* Marks r's node and the nodes from which r comes by reshapes and scalings as goals of the search;
 * returns the position of the earliest. */
static uint32_t
set_goals(struct search *s, const struct xm_value *r)
{
    for (uint32_t k = 0; k < FORMS; k++) {
        const struct xm_node *n = r->node;
        const struct xm_linearity linear = xm_node_linearity(n, r->index);
        uint32_t i = 0;
        s->of[n->id].goal = s->number;
        while (i < n->n_in && !carries(&linear, n, i))
            i++;
        if (i == n->n_in)
            return s->of[n->id].place;
        r = xm_in(n, i);
    }
    return s->of[r->node->id].place;
}

static void
push_operands(struct search *s, const struct xm_node *n, uint32_t but, bool passed,
              uint32_t oldest)
{
    s->work += n->n_in;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_node *maker = xm_in(n, i)->node;
        const uint32_t step = 2 * maker->id + passed;
        if (i == but || maker->op == XM_OP_NONE || s->of[maker->id].place < oldest ||
            s->of[maker->id].seen[passed] == s->number)
            continue;
        s->of[maker->id].seen[passed] = s->number;
        s->stack[s->depth++] = step;
    }
}

static bool
is_product(const struct xm_node *n)
{
    return xm_op_info(n->op)->flags & XM_OPF_PRODUCT;
}

/* Whether another operand of n than i is computed from operand i through a product. */
static bool
others_come_from(struct search *s, const struct xm_node *n, uint32_t i)
{
    s->number++;
    s->depth = 0;
    const uint32_t oldest = set_goals(s, xm_in(n, i));
    push_operands(s, n, i, is_product(n), oldest);
    while (s->depth > 0 && s->work < MOST_WORK) {
        const uint32_t step = s->stack[--s->depth];
        const struct xm_node *m = s->of[step / 2].node;
        if (step % 2 && s->of[m->id].goal == s->number)
            return true;
        push_operands(s, m, UINT32_MAX, step % 2 || is_product(m), oldest);
    }
    return false;
}

/* If result `result` of n is a sum r + f whose f comes from r through a product, adds it to the
 * stream. */
static void
find_sum(struct search *s, const struct xm_node *n, uint32_t result)
{
    const struct xm_linearity linear = xm_node_linearity(n, result);
    for (uint32_t i = 0; i < n->n_in && i < 63; i++) {
        if (!carries(&linear, n, i) || xm_has_operand(linear.alone, i) ||
            !others_come_from(s, n, i))
            continue;
        s->of[n->id + result].r = i + 1;
        s->stream[n->id + result] = true;
        return;
    }
}

/* ---- what r was, and what becomes of the sum --------------------------------------------- */

static void
mark_before(struct search *s, const struct xm_node *n, uint32_t result)
{
    const struct xm_linearity linear = xm_node_linearity(n, result);
    const uint32_t r = s->of[n->id + result].r;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (carries(&linear, n, i) && (r == 0 || r == i + 1))
            s->stream[number_of(xm_in(n, i))] = true;
    }
}

static void
mark_behind(struct search *s, const struct xm_node *n, uint32_t result)
{
    const struct xm_linearity linear = xm_node_linearity(n, result);
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (carries(&linear, n, i) && s->stream[number_of(xm_in(n, i))])
            s->stream[n->id + result] = true;
    }
}

static void
find_stream(struct search *s)
{
    uint32_t place = 0;
    xm_for_each_node(n, s->g)
    {
        s->of[n->id].node = n;
        s->of[n->id].place = ++place;
        for (uint32_t i = 0; i < n->n_out; i++)
            find_sum(s, n, i);
    }
    for (const struct xm_node *n = s->g->last; n; n = n->before) {
        for (uint32_t i = 0; i < n->n_out; i++)
            if (s->stream[n->id + i])
                mark_before(s, n, i);
    }
    xm_for_each_node(n, s->g)
    {
        for (uint32_t i = 0; i < n->n_out; i++)
            mark_behind(s, n, i);
    }
}

bool
xm_find_residual_stream(const struct xm_graph *g, bool *stream)
{
    const size_t n = (size_t)g->next_id + 1;
    struct search s = {.g = g, .stream = stream};
    struct xm_arena scratch = {0};
    s.of = xm_arena_alloc(&scratch, n * sizeof(*s.of));
    s.stack = xm_arena_alloc(&scratch, n * 2 * sizeof(*s.stack));
    const bool ok = s.of && s.stack;
    if (ok)
        find_stream(&s);
    xm_arena_free(&scratch);
    return ok;
}
