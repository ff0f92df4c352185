/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes row-wise steps between matrix products one operation.
 *
 *     s = r + rms_norm(a) g,  m = rms_norm(s) h,  e = rms_norm(s) k
 *  -> s, m, e = row_chain(r, a, g, h, k)
 *
 * A step is a norm, a rounding, or a sum or product of two values of one shape, or of a value and a
 * constant row or number. Steps that read each other, perhaps through reshapes that keep the rows,
 * are joined to convex sets (rewrite/convex.h) as long as the device can run them.
 *
 * So the end of a layer and the norm at the beginning of the next are one group, and the residual
 * sum that is read again after the experts is a result of one group and an operand of another. Not
 * done: groups of one step or without a norm, which have kernels of their own.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/convex.h"

/* The row chain that a group of steps becomes. */
struct plan {
    struct xm_node *const *step; /* in the graph's order */
    struct xm_row_chain chain;
    struct xm_value *x[XM_CHAIN_XS], *c[XM_CHAIN_CS], *y[XM_CHAIN_YS];
    struct xm_value *in[XM_CHAIN_XS + XM_CHAIN_CS]; /* x, then c */
    union xm_attr attr;
    struct xm_strbuf text; /* text of the steps */
};

/* ---- steps ------------------------------------------------------------------------- */

/* Whether v is a constant that is the same for all rows of n elements. */
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

/* Whether one operand has the shape of the result, and the other one, too, or is a constant. */
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
is_unary_step(const struct xm_node *n, int64_t width)
{
    (void)width;
    return !xm_value_is_const(xm_in(n, 0));
}

static const struct step_kind {
    enum xm_op op;
    enum xm_chain_op step;
    bool (*is_step)(const struct xm_node *n, int64_t width);
} step_kinds[] = {
    /* clang-format off */
    { XM_OP_RMS_NORM,   XM_CHAIN_RMS_NORM,   is_norm_step },
    { XM_OP_ADD,        XM_CHAIN_ADD,        is_pair_step },
    { XM_OP_MULTIPLY,   XM_CHAIN_MULTIPLY,   is_pair_step },
    { XM_OP_ROUND_BF16, XM_CHAIN_ROUND_BF16, is_unary_step },
    /* clang-format on */
};

/* The kind of step that n is; NULL: none. */
static const struct step_kind *
kind_of(const struct xm_node *n)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(step_kinds); i++) {
        if (step_kinds[i].op == n->op)
            return &step_kinds[i];
    }
    return NULL;
}

static enum xm_convex_kind
classify(const struct xm_node *n)
{
    const struct step_kind *kind = kind_of(n);
    int64_t width = xm_last_dim(&n->out[0]);
    if (xm_keeps_rows(n))
        return XM_CONVEX_PASSED;
    return kind && width >= 1 && width <= INT32_MAX &&
                   xm_element_is_float(n->out[0].type.element) && kind->is_step(n, width)
               ? XM_CONVEX_MEMBER
               : XM_CONVEX_OUTSIDE;
}

/* ---- a group as an operation ------------------------------------------------------- */

/* Finds v in a list of at most `most` values, or adds it; *index: its index. False: the list is
 * full. */
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

/* Sets operand i of a step. A norm whose factors are all 1 has no second operand, nor has a
 * rounding. */
static bool
plan_operand(const struct xm_convex *groups, struct plan *p, const struct xm_node *n,
             uint32_t i, struct xm_chain_operand *out)
{
    struct xm_row_chain *chain = &p->chain;
    *out = (struct xm_chain_operand){XM_CHAIN_NONE, 0};
    if (i >= n->n_in)
        return true;
    struct xm_value *v = xm_in(n, i);
    if (n->op == XM_OP_RMS_NORM && i == 1 && xm_is_filled(v, 1.0f))
        return true;
    if (xm_value_is_const(v)) {
        out->kind = XM_CHAIN_C;
        return list_value(p->c, &chain->n_c, XM_ARRAY_LEN(p->c), v, &out->i);
    }
    v = xm_convex_source(groups, v);
    out->kind = XM_CHAIN_S;
    for (out->i = 0; out->i < chain->n_steps; out->i++) {
        if (&p->step[out->i]->out[0] == v)
            return true;
    }
    out->kind = XM_CHAIN_X;
    return list_value(p->x, &chain->n_x, XM_ARRAY_LEN(p->x), v, &out->i);
}

static bool
plan_step(const struct xm_convex *groups, struct plan *p, const struct xm_node *n)
{
    struct xm_row_chain *chain = &p->chain;
    struct xm_chain_step step = {.op = kind_of(n)->step};
    /* a constant must be the second operand */
    uint32_t first = xm_value_is_const(xm_in(n, 0)) ? 1 : 0;
    if (!plan_operand(groups, p, n, first, &step.a) ||
        !plan_operand(groups, p, n, 1 - first, &step.b))
        return false;
    if (n->op == XM_OP_RMS_NORM)
        step.epsilon = n->attr.rms_norm.epsilon;
    chain->step[chain->n_steps++] = step;
    return true;
}

/* Marks as results the steps that nodes outside of the group read. */
static bool
plan_results(const struct xm_convex *groups, struct plan *p)
{
    struct xm_row_chain *chain = &p->chain;
    uint32_t own[XM_CHAIN_STEPS] = {0};
    for (uint32_t i = 0; i < chain->n_steps; i++) {
        const struct xm_chain_step *s = &chain->step[i];
        own[s->a.i] += s->a.kind == XM_CHAIN_S;
        own[s->b.i] += s->b.kind == XM_CHAIN_S;
    }
    for (uint32_t i = 0; i < chain->n_steps; i++) {
        struct xm_value *v = &p->step[i]->out[0];
        chain->step[i].is_result = xm_convex_reads(groups, v) > own[i];
        if (chain->step[i].is_result && chain->n_y == XM_ARRAY_LEN(p->y))
            return false;
        if (chain->step[i].is_result)
            p->y[chain->n_y++] = v;
    }
    return true;
}

/* Makes the chain of a group. False: it exceeds the limits of a chain, or memory is exhausted. The
 * caller frees the text. */
static bool
make_plan(const struct xm_convex *groups, struct xm_node *const *step, uint32_t n,
          struct plan *p)
{
    struct xm_row_chain *chain = &p->chain;
    *p = (struct plan){.step = step};
    bool fits = true;
    for (uint32_t i = 0; fits && i < n; i++)
        fits = plan_step(groups, p, step[i]);
    if (!fits || !plan_results(groups, p))
        return false;
    memcpy(p->in, p->x, chain->n_x * sizeof(struct xm_value *));
    memcpy(p->in + chain->n_x, p->c, chain->n_c * sizeof(struct xm_value *));
    xm_row_chain_print(chain, &p->text);
    p->attr.row_chain.steps = xm_strbuf_text(&p->text);
    return xm_strbuf_ok(&p->text);
}

/* Whether the device can run these steps as one chain; called while a set grows. */
static bool
fits(void *ctx, const struct xm_convex *groups, struct xm_node *const *step, uint32_t n)
{
    struct plan p;
    const char *why_not;
    bool runs = make_plan(groups, step, n, &p) &&
                (p.chain.n_y == 0 || xm_can_run(ctx, XM_OP_ROW_CHAIN, &p.attr, p.in,
                                                p.chain.n_x + p.chain.n_c, &why_not));
    xm_strbuf_free(&p.text);
    return runs;
}

/* ---- the operation ----------------------------------------------------------------- */

/* Whether the group has a norm, and another node reads its result. */
static bool
is_useful(const struct plan *p)
{
    bool norms = false;
    for (uint32_t i = 0; i < p->chain.n_steps; i++)
        norms |= p->chain.step[i].op == XM_CHAIN_RMS_NORM;
    return norms && p->chain.n_y > 0;
}

/* Builds the chain of a group. All rows get the shape of the first step's result. now[id] becomes
 * the value that replaces the result of step `id`; readers are changed after all groups are
 * built. */
static bool
emit(struct xm_graph *g, const struct xm_caps *caps, struct plan *p,
     struct xm_value **now)
{
    const struct xm_row_chain *chain = &p->chain;
    const struct xm_shape *shape = &p->step[0]->out[0].type.shape;
    struct xm_builder b = xm_builder_before(g, p->step[chain->n_steps - 1]);
    for (uint32_t i = 0; i < chain->n_x; i++) {
        struct xm_value *y = now[p->x[i]->node->id], *x = y ? y : p->x[i];
        if (y && xm_keeps_rows(y->node))
            x = xm_in(y->node, 0);
        p->in[i] = xm_reshape_like(&b, x, shape);
    }
    for (uint32_t i = 0; i < chain->n_c; i++)
        p->in[chain->n_x + i] = xm_const_flat(&b, p->c[i]);
    struct xm_node *n = xm_fused_build(&b, caps, XM_OP_ROW_CHAIN, &p->attr, p->in,
                                       chain->n_x + chain->n_c);
    for (uint32_t i = 0; n && i < chain->n_y; i++) {
        const struct xm_value *old = p->y[i];
        now[old->node->id] = xm_reshape_like(&b, &n->out[i], &old->type.shape);
    }
    return n;
}

/* Builds the groups, each when its first step is reached. */
static bool
emit_groups(struct xm_graph *g, const struct xm_caps *caps,
            const struct xm_convex *groups, uint32_t n_ids, struct xm_value **now)
{
    bool any = false;
    for (struct xm_node *n = g->first; n && g->err.status == XM_OK; n = n->next) {
        struct xm_node *step[XM_CONVEX_MOST];
        struct plan p;
        uint32_t n_steps = n->id < n_ids ? xm_convex_members(groups, n, step) : 0;
        if (n_steps < 2 || step[0] != n)
            continue;
        if (make_plan(groups, step, n_steps, &p) && is_useful(&p))
            any |= emit(g, caps, &p, now);
        xm_strbuf_free(&p.text);
    }
    return any;
}

static void
replace_results(struct xm_graph *g, uint32_t n_ids, struct xm_value **now)
{
    xm_for_each_node(n, g)
    {
        if (n->id < n_ids && now[n->id])
            xm_value_replace(g, &n->out[0], now[n->id]);
    }
}

bool
xm_pass_fuse_row_chain(struct xm_graph *g, const struct xm_caps *caps)
{
    struct xm_caps all = {NULL, NULL, NULL};
    struct xm_caps asked = caps ? *caps : all;
    const struct xm_convex_rules rules = {&asked, classify, fits, XM_CHAIN_STEPS};
    const uint32_t n_ids = g->next_id;
    struct xm_value **now = xm_calloc((size_t)n_ids + 1, sizeof(*now));
    struct xm_convex *groups = xm_convex_grow(g, &rules);
    bool any = groups && now && emit_groups(g, caps, groups, n_ids, now);
    if (!now)
        xm_no_memory(&g->err, "groups of row-wise steps");
    xm_convex_destroy(groups);
    if (any && g->err.status == XM_OK)
        replace_results(g, n_ids, now);
    xm_free(now);
    if (any) {
        xm_graph_remove_dead(g);
        xm_graph_sort(g, &g->err); /* a chain is at the place of its last step */
    }
    return any;
}
