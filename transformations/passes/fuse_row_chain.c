/* SPDX-License-Identifier: Apache-2.0
 *
 * Row-wise steps between the products become one operation.
 *
 *     s = r + rms_norm(a) g,  m = rms_norm(s) h,  e = rms_norm(s) k
 *  -> s, m, e = row_chain(r, a, g, h, k)
 *
 * A step is a norm, or a sum or product of two values of one shape, or of one and a constant
 * row or number. Steps that read each other, perhaps through reshapes that keep the rows,
 * grow into groups, edge by edge, while
 *
 *   - no path leaves the group and comes back: the operation would wait for itself;
 *   - it has no more steps, operands and results than kernels take (row_chain.h).
 *
 * So the end of a layer and the norm that begins the next are one group, and the residual
 * sum that is read again behind the experts is a result of one and an operand of another.
 * Not done here: groups of one step or without a norm, which have kernels of their own.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { MOST_WORK = 1 << 27 }; /* of all searches together: about a second */

/* By node id. Ids that did not exist when the pass began are outside of everything. */
struct groups {
    struct xm_graph *g;
    uint32_t n_ids;
    struct xm_node *
        *next;       /* the group's next step, in a circle; NULL: the node is no step */
    uint32_t *group; /* of a step: the same number for all of its group */
    uint32_t *place; /* in the graph's order */
    uint32_t *seen;  /* the last search that came here */
    struct xm_node **stack; /* of a search */
    uint32_t search;
    uint64_t work; /* operands that searches have looked at */
};

/* A group, or two that may become one, as an operation. */
struct plan {
    struct xm_node *step[XM_CHAIN_STEPS]; /* in the graph's order */
    struct xm_row_chain chain;
    struct xm_value *x[XM_CHAIN_XS], *c[XM_CHAIN_CS], *y[XM_CHAIN_YS];
};

/* ---- steps ------------------------------------------------------------------------- */

/* What a value has its rows from. */
static struct xm_value *
rows_of(struct xm_value *v)
{
    while (xm_keeps_rows(v->node))
        v = xm_in(v->node, 0);
    return v;
}

/* A constant that is the same for all rows of n. */
static bool
is_row_constant(const struct xm_value *v, int64_t n)
{
    uint64_t elements;
    return v->node->op == XM_OP_CONST && xm_element_is_float(v->type.element) &&
           xm_element_readable(v->type.element) &&
           xm_static_elements(&v->type.shape, &elements) &&
           (elements == 1 || (elements == (uint64_t)n && xm_last_dim(v) == n));
}

static bool
is_norm_step(const struct xm_node *n, int64_t width)
{
    float epsilon = n->attr.rms_norm.epsilon;
    return epsilon >= 0.0f && epsilon < INFINITY && !xm_value_is_const(xm_in(n, 0)) &&
           is_row_constant(xm_in(n, 1), width);
}

/* A value of the result's shape, and another or a constant. */
static bool
is_pair_step(const struct xm_node *n, int64_t width)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const struct xm_value *v = xm_in(n, i);
        if (is_row_constant(v, width))
            continue;
        if (xm_value_is_const(v) || !xm_shape_eq(&v->type.shape, &n->out[0].type.shape))
            return false;
        rows++;
    }
    return rows > 0;
}

static bool
is_step(const struct xm_node *n)
{
    if (n->op != XM_OP_RMS_NORM && n->op != XM_OP_ADD && n->op != XM_OP_MULTIPLY)
        return false;
    int64_t width = xm_last_dim(&n->out[0]);
    if (width < 1 || width > INT32_MAX || !xm_element_is_float(n->out[0].type.element))
        return false;
    return n->op == XM_OP_RMS_NORM ? is_norm_step(n, width) : is_pair_step(n, width);
}

static bool
is_of(const struct groups *s, const struct xm_node *n, const uint32_t group[2])
{
    return n->id < s->n_ids && s->next[n->id] &&
           (s->group[n->id] == group[0] || s->group[n->id] == group[1]);
}

/* ---- a group as an operation ------------------------------------------------------- */

/* The index of v in a list of at most `most`, where it is put if need be. */
static bool
list_value(struct xm_value **list, uint32_t *n, uint32_t most, struct xm_value *v,
           uint32_t *index)
{
    *index = 0;
    while (*index < *n && list[*index] != v)
        ++*index;
    if (*index == most)
        return false;
    if (*index == *n)
        list[(*n)++] = v;
    return true;
}

/* Operand i of a step. Factors of a norm that are all 1 are left out. */
static bool
plan_operand(struct plan *p, const struct xm_node *n, uint32_t i,
             struct xm_chain_operand *out)
{
    struct xm_value *v = xm_in(n, i);
    struct xm_row_chain *chain = &p->chain;
    *out = (struct xm_chain_operand){XM_CHAIN_NONE, 0};
    if (n->op == XM_OP_RMS_NORM && i == 1 && xm_is_filled(v, 1.0f))
        return true;
    if (xm_value_is_const(v)) {
        out->kind = XM_CHAIN_C;
        return list_value(p->c, &chain->n_c, XM_CHAIN_CS, v, &out->i);
    }
    v = rows_of(v);
    out->kind = XM_CHAIN_S;
    for (out->i = 0; out->i < chain->n_steps; out->i++) {
        if (&p->step[out->i]->out[0] == v)
            return true;
    }
    out->kind = XM_CHAIN_X;
    return list_value(p->x, &chain->n_x, XM_CHAIN_XS, v, &out->i);
}

/* Walks the tree of reshapes that hangs on v without a stack: a file says how deep it is. */
static bool
is_read_outside(const struct groups *s, const struct xm_value *v, const uint32_t group[2])
{
    const struct xm_value *at = v;
    const struct xm_use *u = v->uses;
    while (u || at != v) {
        if (!u) { /* all readers of a reshape are in the group: on behind the reshape */
            u = at->node->in[0].next;
            at = xm_in(at->node, 0);
        } else if (xm_keeps_rows(u->user)) {
            at = &u->user->out[0];
            u = at->uses;
        } else if (is_of(s, u->user, group)) {
            u = u->next;
        } else {
            return true;
        }
    }
    return false;
}

static bool
plan_step(const struct groups *s, struct plan *p, struct xm_node *n,
          const uint32_t group[2])
{
    static const enum xm_chain_op ops[XM_OP_COUNT] = {
        [XM_OP_RMS_NORM] = XM_CHAIN_RMS_NORM,
        [XM_OP_ADD] = XM_CHAIN_ADD,
        [XM_OP_MULTIPLY] = XM_CHAIN_MULTIPLY};
    struct xm_row_chain *chain = &p->chain;
    struct xm_chain_step step = {.op = ops[n->op]};
    uint32_t first = xm_value_is_const(xm_in(n, 0)) ? 1 : 0; /* constants come second */
    if (!plan_operand(p, n, first, &step.a) || !plan_operand(p, n, 1 - first, &step.b))
        return false;
    if (n->op == XM_OP_RMS_NORM)
        step.epsilon = n->attr.rms_norm.epsilon;
    step.is_result = is_read_outside(s, &n->out[0], group);
    if (step.is_result && chain->n_y == XM_CHAIN_YS)
        return false;
    if (step.is_result)
        p->y[chain->n_y++] = &n->out[0];
    p->step[chain->n_steps] = n;
    chain->step[chain->n_steps++] = step;
    return true;
}

/* The steps of the circle through `first`, put into a list that is kept in order. */
static bool
list_steps(const struct groups *s, struct xm_node *first, struct xm_node **list,
           uint32_t *n)
{
    struct xm_node *step = first;
    do {
        if (*n == XM_CHAIN_STEPS)
            return false;
        uint32_t at = (*n)++;
        for (; at > 0 && s->place[list[at - 1]->id] > s->place[step->id]; at--)
            list[at] = list[at - 1];
        list[at] = step;
        step = s->next[step->id];
    } while (step != first);
    return true;
}

/* The groups of a and b (which may be one) as an operation; false: it would be too large. */
static bool
make_plan(const struct groups *s, struct xm_node *a, struct xm_node *b, struct plan *p)
{
    const uint32_t group[2] = {s->group[a->id], s->group[b->id]};
    struct xm_node *list[XM_CHAIN_STEPS];
    uint32_t n = 0;
    p->chain = (struct xm_row_chain){.n_steps = 0};
    bool fits = list_steps(s, a, list, &n) &&
                (group[0] == group[1] || list_steps(s, b, list, &n));
    for (uint32_t i = 0; fits && i < n; i++)
        fits = plan_step(s, p, list[i], group);
    return fits;
}

/* ---- growing ----------------------------------------------------------------------- */

/* What a search goes on with: the makers of n's operands that it has not seen. */
static uint32_t
push_operands(struct groups *s, const struct xm_node *n, uint32_t depth)
{
    s->work += n->n_in + 1;
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct xm_node *maker = xm_in(n, i)->node;
        if (maker->op == XM_OP_NONE || s->seen[maker->id] == s->search)
            continue;
        s->seen[maker->id] = s->search;
        s->stack[depth++] = maker;
    }
    return depth;
}

/* The same for all steps of n's group: a group is one operation already. */
static uint32_t
push_group(struct groups *s, struct xm_node *n, uint32_t depth)
{
    struct xm_node *step = n;
    do {
        s->seen[step->id] = s->search;
        depth = push_operands(s, step, depth);
        step = s->next[step->id] ? s->next[step->id] : n;
    } while (step != n);
    return depth;
}

/* Whether what the plan reads depends on one of its steps, or may: each search goes back to the
 * graph's beginning, so that in graphs larger than any model's they end. */
static bool
waits_for_itself(struct groups *s, const struct plan *p, const uint32_t group[2])
{
    uint32_t depth = 0;
    s->search++;
    for (uint32_t i = 0; i < p->chain.n_x; i++) {
        struct xm_node *maker = p->x[i]->node;
        if (s->seen[maker->id] != s->search)
            s->stack[depth++] = maker;
        s->seen[maker->id] = s->search;
    }
    while (depth > 0) {
        struct xm_node *n = s->stack[--depth];
        if (is_of(s, n, group) || s->work > MOST_WORK)
            return true;
        depth = push_group(s, n, depth);
    }
    return false;
}

static void
try_to_join(struct groups *s, struct xm_node *a, struct xm_node *b)
{
    const uint32_t group[2] = {s->group[a->id], s->group[b->id]};
    struct plan p;
    if (group[0] == group[1] || !make_plan(s, a, b, &p) || waits_for_itself(s, &p, group))
        return;
    struct xm_node *step = b;
    do {
        s->group[step->id] = group[0];
        step = s->next[step->id];
    } while (step != b);
    struct xm_node *behind_a = s->next[a->id]; /* two circles become one */
    s->next[a->id] = s->next[b->id];
    s->next[b->id] = behind_a;
}

static void
find_groups(struct groups *s)
{
    uint32_t place = 0;
    xm_for_each_node(n, s->g)
    {
        s->place[n->id] = place++;
        s->group[n->id] = n->id;
        s->next[n->id] = is_step(n) ? n : NULL;
        for (uint32_t i = 0; s->next[n->id] && i < 2; i++) {
            struct xm_node *maker = rows_of(xm_in(n, i))->node;
            if (s->next[maker->id])
                try_to_join(s, n, maker);
        }
    }
}

/* ---- the operation ----------------------------------------------------------------- */

/* Whether it norms something, and somebody reads what it makes. */
static bool
is_useful(const struct plan *p)
{
    for (uint32_t i = 0; p->chain.n_y > 0 && i < p->chain.n_steps; i++) {
        if (p->chain.step[i].op == XM_CHAIN_RMS_NORM)
            return true;
    }
    return false;
}

static bool
print_steps(struct xm_graph *g, const struct xm_row_chain *chain, union xm_attr *attr)
{
    struct xm_strbuf text = {0};
    xm_row_chain_print(chain, &text);
    attr->row_chain.steps =
        xm_strbuf_ok(&text) ? xm_arena_strdup(&g->arena, xm_strbuf_text(&text)) : NULL;
    xm_strbuf_free(&text);
    if (!attr->row_chain.steps)
        xm_fail(&g->err, XM_NO_MEMORY, "out of memory for the steps of a row chain");
    return attr->row_chain.steps;
}

/* All rows get the shape that the first step's result has. */
static bool
fuse(struct xm_graph *g, const struct xm_caps *caps, const struct plan *p)
{
    const struct xm_row_chain *chain = &p->chain;
    const struct xm_shape *shape = &p->step[0]->out[0].type.shape;
    struct xm_builder b = xm_builder_before(g, p->step[chain->n_steps - 1]);
    struct xm_value *in[XM_CHAIN_XS + XM_CHAIN_CS];
    uint32_t n_in = chain->n_x + chain->n_c;
    union xm_attr attr;
    const char *why_not;
    memcpy(in, p->x, chain->n_x * sizeof(struct xm_value *));
    memcpy(in + chain->n_x, p->c, chain->n_c * sizeof(struct xm_value *));
    if (!print_steps(g, chain, &attr) ||
        !xm_can_run(caps, XM_OP_ROW_CHAIN, &attr, in, n_in, &why_not))
        return false;
    for (uint32_t i = 0; i < chain->n_x; i++)
        in[i] = xm_reshape_like(&b, in[i], shape);
    for (uint32_t i = chain->n_x; i < n_in; i++)
        in[i] = xm_const_flat(&b, in[i]);
    struct xm_node *n = xm_node_build(&b, XM_OP_ROW_CHAIN, &attr, in, n_in);
    for (uint32_t i = 0; n && i < chain->n_y; i++) {
        struct xm_value *y = xm_reshape_like(&b, &n->out[i], &p->y[i]->type.shape);
        if (!y)
            return false;
        xm_value_replace(g, p->y[i], y);
    }
    return n;
}

/* A group is fused where its first step stands. */
static bool
fuse_groups(struct groups *s, const struct xm_caps *caps)
{
    struct plan p;
    bool any = false;
    xm_for_each_node(n, s->g)
    {
        if (n->id >= s->n_ids || !s->next[n->id] || s->next[n->id] == n ||
            !make_plan(s, n, n, &p) || p.step[0] != n || !is_useful(&p))
            continue;
        any |= fuse(s->g, caps, &p);
        if (s->g->err.status != XM_OK)
            break;
    }
    return any;
}

bool
xm_pass_fuse_row_chain(struct xm_graph *g, const struct xm_caps *caps)
{
    size_t n = (size_t)g->next_id + 1;
    struct groups s = {.g = g,
                       .n_ids = g->next_id,
                       .next = xm_calloc(n, sizeof(struct xm_node *)),
                       .group = xm_calloc(n, sizeof(uint32_t)),
                       .place = xm_calloc(n, sizeof(uint32_t)),
                       .seen = xm_calloc(n, sizeof(uint32_t)),
                       .stack = xm_calloc(n, sizeof(struct xm_node *))};
    bool any = false;
    if (s.next && s.group && s.place && s.seen && s.stack) {
        find_groups(&s);
        any = fuse_groups(&s, caps);
    } else {
        xm_fail(&g->err, XM_NO_MEMORY, "out of memory for groups of row-wise steps");
    }
    xm_free(s.next);
    xm_free(s.group);
    xm_free(s.place);
    xm_free(s.seen);
    xm_free(s.stack);
    if (any) {
        xm_graph_remove_dead(g);
        xm_graph_sort(g, &g->err); /* a group stands where its last step stood */
    }
    return any;
}
