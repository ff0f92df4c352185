/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the nodes that replace a match, before its root: all or none.
 *
 * The nodes are built first, and then caps->can_run is asked: it sees the nodes as they would
 * run.
 */
#include "transformations/rewrite/linear_node.h"
#include "transformations/rewrite/match.h"

enum { MOST_IN = 20 }; /* most operands of a node that a rule makes */
_Static_assert((int)XM_MOE_N_IN <= MOST_IN && (int)XM_ATTENTION_N_IN <= MOST_IN &&
                   (int)XM_CHAIN_XS + (int)XM_CHAIN_CS <= MOST_IN,
               "MOST_IN is too small");

/* ---- what can be run ---------------------------------------------------------------- */

bool
xm_can_run(const struct xm_caps *caps, enum xm_op op, const union xm_attr *attr,
           struct xm_value *const *in, uint32_t n_in, const char **why_not)
{
    *why_not = NULL;
    return !caps || !caps->can_run ||
           caps->can_run(caps->ctx, op, attr, in, n_in, why_not);
}

static bool
can_run_node(const struct xm_caps *caps, const struct xm_node *n, const char **why)
{
    struct xm_value *in[MOST_IN];
    if (!(xm_op_info(n->op)->flags & XM_OPF_FUSED))
        return true;
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = xm_in(n, i);
    return xm_can_run(caps, n->op, &n->attr, in, n->n_in, why);
}

struct xm_node *
xm_fused_build(struct xm_builder *b, const struct xm_caps *caps, enum xm_op op,
               const union xm_attr *attr, struct xm_value *const *in, uint32_t n_in)
{
    const char *why;
    uint32_t next_id = b->graph->next_id;
    struct xm_node *n = xm_node_build(b, op, attr, in, n_in);
    if (!n || can_run_node(caps, n, &why))
        return n;
    xm_node_remove(b->graph, n);
    b->graph->next_id = next_id;
    return NULL;
}

/* ---- patterns ------------------------------------------------------------------------ */

/* The state while a replacement is built. */
struct maker {
    struct xm_builder b;
    struct xm_match *m;
    const struct xm_rule *rule;
};

static struct xm_value *emit(struct maker *e, const struct xm_pat *pat);

static struct xm_value *
slot_value(struct maker *e, const struct xm_pat *pat)
{
    struct xm_value *v = e->m->slot[pat->slot];
    return v ? v : xm_none(e->m->graph);
}

/* Copies the operands of node `from` to in[], as those of a node of type `op`; returns their
 * number. */
static uint32_t
carry(struct xm_graph *g, const struct xm_node *from, enum xm_op op, struct xm_value **in)
{
    if (op == XM_OP_LINEAR && from->op == XM_OP_MATMUL) {
        xm_linear_operands(g, from, in);
        return XM_LINEAR_BIAS + 1;
    }
    for (uint32_t i = 0; i < from->n_in && i < MOST_IN; i++)
        in[i] = xm_in(from, i);
    return from->n_in;
}

static struct xm_value *
emit_op(struct maker *e, const struct xm_pat *pat)
{
    const struct xm_node *from = /* node to change; NULL: a new node             */
        pat->rest == XM_REST_FREE ? e->m->slot[pat->slot]->node : NULL;
    bool has_attr = pat == e->rule->replace && e->rule->attr;
    struct xm_value *in[MOST_IN], *none = xm_none(e->m->graph);
    uint32_t n = from ? carry(e->m->graph, from, pat->op, in) : 0, at;
    union xm_attr attr;
    if (n > MOST_IN || xm_attr_defaults(e->m->graph, pat->op, &attr) != XM_OK)
        return NULL;
    while (n < (uint32_t)xm_op_info(pat->op)->min_in)
        in[n++] = none;
    for (uint32_t i = 0; pat->in && pat->in[i]; i++) {
        const struct xm_pat *one = xm_pat_operand(pat, i, &at);
        while (n <= at)
            in[n++] = none;
        in[at] = emit(e, one);
    }
    if (from && (from->op == pat->op || from->op != XM_OP_MATMUL))
        attr = from->attr;
    if (has_attr)
        e->rule->attr(e->m, &attr);
    struct xm_node *made =
        xm_node_build(&e->b, pat->op, from || has_attr ? &attr : NULL, in, n);
    return made ? &made->out[pat->out] : NULL;
}

static struct xm_value *
emit(struct maker *e, const struct xm_pat *pat)
{
    struct xm_value *v;
    switch (pat->kind) {
    case XM_PAT_OP:
        return emit_op(e, pat);
    case XM_PAT_ABSENT:
        return xm_none(e->m->graph);
    case XM_PAT_SCALAR: /* of the element type of the root            */
        return xm_const_float(&e->b, e->m->root->out[0].type.element, (float)pat->number);
    case XM_PAT_LIKE:
        v = emit(e, pat->in[0]);
        return xm_reshape_like(&e->b, v, &e->m->slot[pat->slot]->type.shape);
    case XM_PAT_FLAT:
        v = slot_value(e, pat);
        return xm_is_none(v) ? v : xm_const_flat(&e->b, v);
    case XM_PAT_MAKE:
        return pat->make(&e->b, e->m);
    default:
        return slot_value(e, pat);
    }
}

/* Converts and reshapes y to the type of the value that it replaces. Sizes that depend on data are
 * not compared. */
static struct xm_value *
as_type(struct xm_builder *b, struct xm_value *y, const struct xm_type *type)
{
    if (y && y->type.element != type->element)
        y = xm_convert(b, y, type->element);
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        if (xm_dim_is_unknown(type->shape.dim[i]))
            return y;
    }
    return xm_reshape_like(b, y, &type->shape);
}

/* ---- all or nothing ------------------------------------------------------------------ */

/* The first node that was built since the graph had `next_id`; the root if there is none. */
static struct xm_node *
first_new(const struct xm_match *m, uint32_t next_id)
{
    struct xm_node *n = m->root;
    while (n->before && n->before->id >= next_id)
        n = n->before;
    return n;
}

void
xm_replacement_undo(struct xm_match *m, uint32_t next_id)
{
    struct xm_node *n = m->root->before, *before;
    /* remove readers before the nodes that they read */
    for (; n && n->id >= next_id; n = before) {
        before = n->before;
        xm_node_remove(m->graph, n);
    }
    m->graph->next_id = next_id;
}

static struct xm_value *
build(struct xm_match *m, const struct xm_rule *rule)
{
    struct maker e = {xm_builder_before(m->graph, m->root), m, rule};
    if (rule->apply)
        return rule->apply(&e.b, m);
    if (rule->keeps_name)
        e.b.name = m->slot[rule->replace->slot]->node->name;
    return as_type(&e.b, emit(&e, rule->replace), &m->root->out[rule->find->out].type);
}

struct xm_value *
xm_replacement_build(struct xm_match *m, const struct xm_rule *rule, const char **why)
{
    uint32_t next_id = m->graph->next_id;
    struct xm_value *value = build(m, rule);
    *why = NULL;
    for (struct xm_node *n = first_new(m, next_id); value && n != m->root; n = n->next) {
        if (!can_run_node(m->caps, n, why))
            value = NULL;
    }
    if (!value)
        xm_replacement_undo(m, next_id);
    return value;
}
