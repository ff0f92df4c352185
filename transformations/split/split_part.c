/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the graph of a rank: a copy in which constants and weights are cut, and in which values are
 * exchanged, cut or made summands where a node takes them in another layout than that in which they
 * are computed.
 */
#include <string.h>

#include "transformations/graph/builder.h"
#include "transformations/graph/evaluate.h"
#include "transformations/split/split_plan.h"

struct part {
    const struct xm_split *split;
    struct xm_collective *to; /* collective with the other ranks */
    struct xm_graph *g;       /* graph of the rank */
    struct xm_builder b;      /* inserts before the node that is being processed */
    /* by number of a value: the whole value, after an exchange; NULL: not made yet */
    struct xm_value **whole;
    struct xm_error *err;
};

static void
range_of(const struct part *p, uint32_t class_, struct xm_dim d, int64_t *first,
         int64_t *n)
{
    uint64_t at, count;
    xm_split_range(p->split, class_, (uint64_t)d.n, p->to->rank, &at, &count);
    *first = (int64_t)at;
    *n = (int64_t)count;
}

/* ---- sources ----------------------------------------------------------------------------- */

/* Narrows a weight of `rank` dimensions to elements [first, first + n) along dimension dim. Returns
 * NULL, or a static sentence on failure. */
static const char *
cut(struct xm_weight *w, uint32_t rank, uint32_t dim, uint64_t first, uint64_t n)
{
    const uint32_t from_last = rank - 1 - dim;
    return from_last == 0   ? xm_weight_slice_cols(w, first, n)
           : from_last == 1 ? xm_weight_slice_rows(w, first, n)
                            : xm_weight_slice_experts(w, first, n);
}

static struct xm_value *
cut_weight(struct part *p, const struct xm_value *v, uint32_t dim, int64_t first,
           int64_t n)
{
    struct xm_weight w = v->node->attr.weight;
    const char *why = cut(&w, v->type.shape.rank, dim, (uint64_t)first, (uint64_t)n);
    if (!why)
        return xm_weight(&p->b, &w, v->type.element);
    xm_fail(p->err, XM_UNSUPPORTED, "weight '%s' cannot be split: %s", v->node->name,
            why);
    return NULL;
}

/* Cuts a constant along a dimension. Its elements are whole bytes; split_plan.c cuts no others. */
static struct xm_value *
cut_const(struct part *p, const struct xm_value *v, uint32_t dim, int64_t first,
          int64_t n)
{
    struct xm_type type = v->type;
    const struct xm_data from = v->node->attr.data;
    uint64_t outer = 1, inner = xm_element_bits(type.element) / 8;
    for (uint32_t d = 0; d < type.shape.rank; d++)
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : (uint64_t)type.shape.dim[d].n;
    const uint64_t row = inner * (uint64_t)type.shape.dim[dim].n,
                   part = inner * (uint64_t)n;
    uint8_t *bytes = xm_arena_alloc(&p->g->arena, outer * part);
    if (!bytes) {
        xm_no_memory(p->err, "a slice of a constant");
        return NULL;
    }
    for (uint64_t o = 0; o < outer; o++)
        memcpy(bytes + o * part, from.bytes + o * row + inner * (uint64_t)first, part);
    type.shape.dim[dim] = xm_dim_const(n);
    return xm_const(&p->b, &type, (struct xm_data){bytes, outer * part});
}

/* ---- values of the run --------------------------------------------------------------------- */

/* Adds the exchange that makes the whole value of v from this rank's part or summand `mine`.
 * `element`: the type in which summands are sent; XM_DYNAMIC: their own. */
static struct xm_value *
exchanged(struct part *p, const struct xm_split_value *have, const struct xm_value *v,
          struct xm_value *mine, enum xm_element element)
{
    union xm_attr attr = {.collective = {.of = p->to}};
    if (have->kind == XM_PARTIAL) {
        attr.collective.element = element;
        return xm_op_build(&p->b, XM_OP_ALL_REDUCE, &attr, &mine, 1);
    }
    attr.collective.axis = have->dim;
    attr.collective.size = v->type.shape.dim[have->dim].n;
    return xm_op_build(&p->b, XM_OP_ALL_GATHER, &attr, &mine, 1);
}

/* The whole value of v; the exchange is inserted before the first reader. */
static struct xm_value *
whole(struct part *p, const struct xm_value *v, struct xm_value *mine)
{
    const struct xm_split_value *have = xm_split_value(p->split, v);
    struct xm_value **kept = &p->whole[v->node->id + v->index];
    if (have->kind == XM_MIRRORED)
        return mine;
    if (!*kept) {
        *kept =
            exchanged(p, have, v, mine, p->split->wish.halves_sums ? XM_F16 : XM_DYNAMIC);
        if (*kept)
            (*kept)->stored = mine->stored;
    }
    return *kept;
}

static struct xm_value *
sliced(struct part *p, struct xm_value *x, uint32_t dim, int64_t first, int64_t n)
{
    if (!x)
        return NULL;
    const int64_t from[] = {first}, to[] = {first + n}, step[] = {1}, axis[] = {dim};
    struct xm_value *in[] = {
        x, xm_const_ints(&p->b, XM_I64, from, 1), xm_const_ints(&p->b, XM_I64, to, 1),
        xm_const_ints(&p->b, XM_I64, step, 1), xm_const_ints(&p->b, XM_I64, axis, 1)};
    struct xm_value *y = xm_op_build(&p->b, XM_OP_SLICE, NULL, in, XM_ARRAY_LEN(in));
    if (y)
        y->stored = x->stored;
    return y;
}

/* Makes a value that every rank has a summand: rank 0 keeps it, the others get zero or an absent
 * operand. */
static struct xm_value *
summand(struct part *p, const struct xm_node *n, uint32_t i, struct xm_value *x)
{
    if (!x || p->to->rank == 0)
        return x;
    if (xm_eval_may_lack(n->op, i))
        return xm_none(p->g);
    struct xm_value *zero = xm_const_float(&p->b, x->type.element, 0.0f);
    struct xm_value *y = xm_op2(&p->b, XM_OP_MULTIPLY, x, zero);
    if (y)
        y->stored = x->stored;
    return y;
}

/* A target shape (of a reshape) with the size of this rank's part in dimension dim. */
static struct xm_value *
resized(struct part *p, const struct xm_value *v, uint32_t dim, uint32_t class_)
{
    struct xm_dim d[XM_MAX_RANK];
    int64_t first, n;
    const struct xm_content *c = &v->content;
    if (!xm_content_known(c) || c->n > XM_MAX_RANK || dim >= c->n) {
        xm_fail(p->err, XM_UNSUPPORTED, "the target shape '%s' is not known",
                v->node->name);
        return NULL;
    }
    for (uint32_t i = 0; i < c->n; i++)
        d[i] = xm_dim_import(&p->g->dims, c->e[i]);
    if (xm_dim_is_const(d[dim]) && d[dim].n > 0) {
        range_of(p, class_, d[dim], &first, &n);
        d[dim] = xm_dim_const(n);
    }
    return xm_shape_value(&p->b, v->type.element, d, (int)c->n);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Operand i in the wanted layout; `mine` is what the copied node reads now. */
static struct xm_value *
operand(struct part *p, const struct xm_node *n, uint32_t i, const struct xm_layout *want,
        struct xm_value *mine)
{
    const struct xm_value *v = xm_in(n, i);
    const uint32_t class_ = p->split->nodes[n->id].class_;
    const struct xm_split_value *have = xm_split_value(p->split, v);
    const bool is_source = xm_split_is_source(v);
    int64_t first = 0, count = 0;
    if (want->kind == XM_SIZES)
        return resized(p, v, want->dim, class_);
    if (want->kind == XM_SPLIT)
        range_of(p, class_, v->type.shape.dim[want->dim], &first, &count);
    if (is_source && want->kind == XM_SPLIT)
        return v->node->op == XM_OP_WEIGHT ? cut_weight(p, v, want->dim, first, count)
                                           : cut_const(p, v, want->dim, first, count);
    if (want->kind == XM_FIRST)
        return p->to->rank == 0 ? mine : xm_none(p->g);
    if (is_source)
        return want->kind == XM_PARTIAL ? summand(p, n, i, mine) : mine;
    if (want->kind == have->kind && !have->is_made_whole &&
        (want->kind != XM_SPLIT || want->dim == have->dim))
        return mine;
    if (want->kind == XM_SPLIT && have->kind == XM_SPLIT && want->dim == have->dim)
        return mine;
    struct xm_value *all = whole(p, v, mine);
    return want->kind == XM_SPLIT     ? sliced(p, all, want->dim, first, count)
           : want->kind == XM_PARTIAL ? summand(p, n, i, all)
                                      : all;
}

/* Sets attributes of an expert node that repeat a split size, or say which experts the rank has. */
static void
set_sizes(const struct part *p, const struct xm_node *from, const struct xm_layout *in,
          struct xm_node *n)
{
    int64_t first;
    const uint32_t class_ = p->split->nodes[from->id].class_;
    struct xm_moe_attr *moe = &n->attr.moe;
    if (!xm_split_has_experts(n) || in[XM_MOE_W_DOWN].kind != XM_SPLIT)
        return;
    if (xm_split_cuts_experts(n, XM_MOE_W_DOWN, &in[XM_MOE_W_DOWN]))
        range_of(p, class_, xm_dim_const(moe->experts), &moe->first_expert,
                 &moe->own_experts);
    else
        range_of(p, class_, xm_dim_const(moe->inter), &first, &moe->inter);
    if (in[XM_MOE_SHARED_DOWN].kind == XM_FIRST && p->to->rank != 0)
        moe->shared = 0;
}

static enum xm_status
convert(struct part *p, const struct xm_node *from, struct xm_node *n,
        struct xm_layout *in, struct xm_layout *out)
{
    xm_split_layouts(p->split, from, in, out);
    p->b = xm_builder_before(p->g, n);
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (xm_is_none(xm_in(n, i)))
            continue;
        struct xm_value *v = operand(p, from, i, &in[i], xm_in(n, i));
        if (!v)
            return xm_fail(p->err,
                           p->g->err.status != XM_OK ? p->g->err.status : XM_INVALID,
                           "%s", p->g->err.text);
        xm_node_set_in(n, i, v);
    }
    set_sizes(p, from, in, n);
    return XM_OK;
}

static enum xm_status
convert_all(struct part *p)
{
    const struct xm_graph *g = p->split->g;
    struct xm_layout *in, *out, *both = xm_split_new_layouts(g, &in, &out);
    enum xm_status s = both ? XM_OK : xm_no_memory(p->err, "a rank's graph");
    struct xm_node *n = p->g->first;
    for (const struct xm_node *from = g->first; from && s == XM_OK; from = from->next) {
        s = convert(p, from, n, in, out);
        n = n->next;
    }
    xm_free(both);
    return s;
}

static struct xm_value *
whole_of(const struct xm_value *v, void *ctx, struct xm_error *err)
{
    (void)err;
    return ((const struct part *)ctx)->whole[v->node->id + v->index];
}

/* Returns the whole inner value, with an exchange at the end of the graph if ranks have only parts
 * or summands of it (xm_split_copy_fn). */
static struct xm_value *
inner_of(const struct xm_value *v, void *ctx, struct xm_error *err)
{
    struct part *p = ctx;
    const struct xm_split_value *have = xm_split_value(p->split, v);
    struct xm_value *mine = xm_split_copied(v, p->g, err);
    if (!mine || have->kind == XM_MIRRORED)
        return mine;
    p->b = xm_builder_at_end(p->g);
    struct xm_value *x = exchanged(p, have, v, mine, XM_DYNAMIC);
    if (!x)
        xm_fail(err, p->g->err.status != XM_OK ? p->g->err.status : XM_INVALID, "%s",
                p->g->err.text);
    return x;
}

enum xm_status
xm_split_part(const struct xm_split *s, struct xm_collective *c, struct xm_mapping *owner,
              struct xm_graph **out, struct xm_error *err)
{
    struct part p = {.split = s, .to = c, .err = err};
    if (s->stage)
        return xm_split_layers_part(s, c, owner, out, err);
    XM_TRY(xm_graph_clone(s->g, owner, &p.g, err));
    p.whole = xm_calloc(s->g->next_id + 1, sizeof(struct xm_value *));
    enum xm_status status =
        p.whole ? convert_all(&p) : xm_no_memory(err, "a rank's graph");
    if (status == XM_OK)
        status = xm_split_show(s, p.g, whole_of, inner_of, &p, err);
    xm_free(p.whole);
    if (status == XM_OK) {
        (void)xm_graph_remove_dead(p.g);
        status = xm_graph_infer(p.g);
        if (status != XM_OK)
            xm_fail(err, status, "%s", p.g->err.text);
    }
    if (status == XM_OK)
        *out = p.g;
    else
        xm_graph_destroy(p.g);
    return status;
}

/* ---- what a part has --------------------------------------------------------------------- */

static uint64_t
bytes_of(const struct xm_split *s, const struct xm_node *n, uint32_t i,
         const struct xm_layout *l, uint32_t rank)
{
    const struct xm_value *v = xm_in(n, i);
    uint64_t first, count;
    if (v->node->op != XM_OP_WEIGHT || (l->kind == XM_FIRST && rank != 0))
        return 0;
    struct xm_weight w = v->node->attr.weight;
    if (l->kind == XM_SPLIT) {
        const uint64_t size = (uint64_t)v->type.shape.dim[l->dim].n;
        xm_split_range(s, s->nodes[n->id].class_, size, rank, &first, &count);
        (void)cut(&w, v->type.shape.rank, l->dim, first, count);
    }
    return xm_weight_bytes(&w);
}

enum xm_status
xm_split_weight_bytes(const struct xm_split *s, uint32_t rank, uint64_t *bytes,
                      struct xm_error *err)
{
    *bytes = s->stage ? xm_split_layers_bytes(s, rank) : 0;
    if (s->stage)
        return XM_OK;
    struct xm_layout *in, *out, *both = xm_split_new_layouts(s->g, &in, &out);
    if (!both)
        return xm_no_memory(err, "the layouts of a graph");
    xm_for_each_node(n, s->g)
    {
        xm_split_layouts(s, n, in, out);
        for (uint32_t i = 0; i < n->n_in && n->op != XM_OP_GATHER; i++)
            *bytes += bytes_of(s, n, i, &in[i], rank);
    }
    xm_free(both);
    return XM_OK;
}
