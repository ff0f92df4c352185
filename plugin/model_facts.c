/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/model_facts.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/model_family.h"
#include "transformations/pipeline.h"

enum { MAX_TABLES = 16 };

/* ---- parameters --------------------------------------------------------------------- */

/* A token uses `meets` of the `of` experts of a layer; 0, 0: no experts, or all of them. */
struct share {
    uint64_t of, meets;
};

static struct share
share_of(const struct xm_node *user)
{
    struct share s = {0, 0};
    switch (user->op) {
    case XM_OP_MOE:
    case XM_OP_MOE_COMPRESSED:
    case XM_OP_MOE_3GEMM_FUSED_COMPRESSED:
        s = (struct share){(uint64_t)user->attr.moe.experts,
                           (uint64_t)user->attr.moe.routing.top_k};
        break;
    case XM_OP_GATHER_MATMUL: {
        const struct xm_shape *w = &xm_in(user, 1)->type.shape,
                              *ids = &xm_in(user, 2)->type.shape;
        if (w->rank == 3 && ids->rank > 0 && xm_dim_is_const(w->dim[0]) &&
            xm_dim_is_const(ids->dim[ids->rank - 1]))
            s = (struct share){(uint64_t)w->dim[0].n,
                               (uint64_t)ids->dim[ids->rank - 1].n};
        break;
    }
    default:
        break;
    }
    return s.meets < s.of ? s : (struct share){0, 0};
}

/* Returns how many of the `count` elements of a node's value one token is multiplied with. */
static uint64_t
active_of(const struct xm_node *n, uint64_t count)
{
    const struct xm_shape *s = &n->out[0].type.shape;
    const struct xm_use *use = n->out[0].uses;
    struct share share = use ? share_of(use->user) : (struct share){0, 0};
    bool is_experts = s->rank == 3 && xm_dim_is_const(s->dim[0]) && share.of > 0 &&
                      (uint64_t)s->dim[0].n == share.of;
    return is_experts ? count / share.of * share.meets : count;
}

static int
by_bytes(const void *a, const void *b)
{
    const struct xm_format_facts *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

static void
add_format(struct xm_model_facts *out, const struct xm_format_facts *f)
{
    for (uint32_t i = 0; i < out->n_formats; i++) {
        struct xm_format_facts *have = &out->formats[i];
        if (strcmp(have->text, f->text) != 0 || have->group != f->group ||
            have->has_zero_points != f->has_zero_points)
            continue;
        have->parameters += f->parameters;
        have->bytes += f->bytes;
        return;
    }
    if (out->n_formats < XM_FACTS_FORMATS)
        out->formats[out->n_formats++] = *f;
}

static bool
is_table(const struct xm_node *weight)
{
    for (const struct xm_use *u = weight->out[0].uses; u; u = u->next) {
        if (u->user->op == XM_OP_GATHER && xm_in(u->user, 0) == &weight->out[0])
            return true;
    }
    return false;
}

/* The model's embedding tables. */
struct tables {
    const struct xm_weight *list[MAX_TABLES];
    size_t n;
};

static void
find_tables(const struct xm_graph *g, struct tables *out)
{
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_WEIGHT && out->n < MAX_TABLES && is_table(n))
            out->list[out->n++] = &n->attr.weight;
    }
}

/* Whether `w` is an output head that is also the embedding table, and so the same parameter. Its
 * bytes are in the file once; separate matrices that happen to be equal have bytes of their own. */
static bool
is_tied(const struct tables *tables, const struct xm_weight *w)
{
    for (size_t i = 0; i < tables->n; i++) {
        const struct xm_weight *table = tables->list[i];
        if (table != w && table->data.p == w->data.p && table->rows == w->rows &&
            table->cols == w->cols)
            return true;
    }
    return false;
}

static void
add(struct xm_model_facts *out, const struct xm_node *n, const struct xm_format_facts *f)
{
    out->parameters += f->parameters;
    out->active_parameters += active_of(n, f->parameters);
    out->bytes += f->bytes;
    add_format(out, f);
}

static void
add_weight(struct xm_model_facts *out, const struct xm_node *n)
{
    const struct xm_weight *w = &n->attr.weight;
    const struct xm_format_facts f = {
        .text = xm_weight_format_text(w),
        .group = w->group && w->group == w->cols ? UINT64_MAX : w->group,
        .has_zero_points = w->zero_point.p != NULL,
        .parameters = w->experts * w->rows * w->cols,
        .bytes = xm_weight_bytes(w)};
    add(out, n, &f);
}

/* Counts a constant of the graph, such as a norm's scales or a bias. Single numbers are skipped,
 * because they belong to formulas. */
static void
add_constant(struct xm_model_facts *out, const struct xm_node *n)
{
    const enum xm_element e = n->out[0].type.element;
    const uint64_t bytes = n->attr.data.n_bytes, bits = xm_element_bits(e);
    const struct xm_format_facts f = {.text = xm_element_text(e),
                                      .parameters = bits ? bytes * 8 / bits : 0,
                                      .bytes = bytes};
    if (xm_element_is_float(e) && f.parameters > 1)
        add(out, n, &f);
}

static void
count_parameters(const struct xm_graph *g, struct xm_model_facts *out)
{
    struct tables tables = {.n = 0};
    find_tables(g, &tables);
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_WEIGHT && (is_table(n) || !is_tied(&tables, &n->attr.weight)))
            add_weight(out, n);
        else if (n->op == XM_OP_CONST)
            add_constant(out, n);
    }
    qsort(out->formats, out->n_formats, sizeof(out->formats[0]), by_bytes);
}

/* ---- layers ------------------------------------------------------------------------- */

/* Returns the size of dimension `i`, counted from the last; 0: not constant. */
static uint64_t
size_of(const struct xm_value *v, uint32_t i)
{
    const struct xm_shape *s = &v->type.shape;
    if (s->rank <= i || !xm_dim_is_const(s->dim[s->rank - 1 - i]))
        return 0;
    return (uint64_t)s->dim[s->rank - 1 - i].n;
}

static bool
same_experts(const struct xm_expert_facts *a, const struct xm_expert_facts *b)
{
    return a->experts == b->experts && a->top_k == b->top_k && a->width == b->width &&
           a->shared_width == b->shared_width;
}

static bool
same_attention(const struct xm_attention_facts *a, const struct xm_attention_facts *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->head_size == b->head_size && a->value_head_size == b->value_head_size &&
           a->window == b->window && a->shares_a_cache == b->shares_a_cache;
}

/* Increments the layers of the entry with the same facts, or adds an entry. */
static void
add_expert_row(struct xm_model_facts *out, const struct xm_expert_facts *row)
{
    uint32_t at = 0;
    while (at < out->n_experts && !same_experts(&out->experts[at], row))
        at++;
    if (at < out->n_experts)
        out->experts[at].layers++;
    else if (at < XM_FACTS_KINDS)
        out->experts[out->n_experts++] = *row;
}

static void
add_attention_row(struct xm_model_facts *out, const struct xm_attention_facts *row)
{
    uint32_t at = 0;
    while (at < out->n_attention && !same_attention(&out->attention[at], row))
        at++;
    if (at < out->n_attention)
        out->attention[at].layers++;
    else if (at < XM_FACTS_KINDS)
        out->attention[out->n_attention++] = *row;
}

static void
add_experts(struct xm_model_facts *out, const struct xm_node *n)
{
    const struct xm_moe_attr *a = &n->attr.moe;
    const struct xm_value *shared = xm_in(n, XM_MOE_SHARED_UP);
    const struct xm_expert_facts row = {.layers = 1,
                                        .experts = (uint64_t)a->experts,
                                        .top_k = (uint64_t)a->routing.top_k,
                                        .width = (uint64_t)a->inter,
                                        .shared_width =
                                            xm_is_none(shared) ? 0 : size_of(shared, 1)};
    out->expert_layers++;
    out->hidden = (uint64_t)a->hidden;
    add_expert_row(out, &row);
}

/* Returns the layer that writes the cache which `n` reads. */
static const struct xm_node *
writer_of_cache(const struct xm_graph *g, const struct xm_node *n)
{
    const char *state = n->attr.attention.key_state;
    xm_for_each_node(w, g)
    {
        if (w->op == XM_OP_ATTENTION && !xm_is_none(xm_in(w, XM_ATTENTION_K)) && state &&
            w->attr.attention.key_state &&
            strcmp(w->attr.attention.key_state, state) == 0)
            return w;
    }
    return n;
}

static void
add_attention(struct xm_model_facts *out, const struct xm_graph *g,
              const struct xm_node *n)
{
    const bool shares = xm_is_none(xm_in(n, XM_ATTENTION_K));
    const struct xm_node *writer = shares ? writer_of_cache(g, n) : n;
    const struct xm_value *q = xm_in(n, XM_ATTENTION_Q),
                          *k = xm_in(writer, XM_ATTENTION_K),
                          *v = xm_in(writer, XM_ATTENTION_V);
    const struct xm_attention_facts row = {
        .layers = 1,
        .heads = size_of(q, 1),
        .kv_heads = xm_is_none(k) ? 0 : size_of(k, 1),
        .head_size = size_of(q, 0),
        .value_head_size = xm_is_none(v) ? size_of(&n->out[0], 0) : size_of(v, 0),
        .window = (uint64_t)n->attr.attention.window,
        .shares_a_cache = shares};
    out->layers++;
    add_attention_row(out, &row);
}

/* Takes hidden and vocabulary sizes from an embedding table, unless they are known already. */
static void
look_at_table(struct xm_model_facts *out, const struct xm_node *n)
{
    const struct xm_value *table = xm_in(n, 0);
    if (table->node->op != XM_OP_WEIGHT || table->type.shape.rank != 2)
        return;
    if (out->hidden == 0)
        out->hidden = size_of(table, 0);
    if (out->vocabulary == 0)
        out->vocabulary = size_of(table, 1);
}

/* Takes the vocabulary size from the logits: a result of rank 3 whose last dimension is not the
 * hidden size, as that of hidden states would be. */
static void
look_at_result(struct xm_model_facts *out, const struct xm_node *n)
{
    const struct xm_value *v = xm_in(n, 0);
    const uint64_t last = size_of(v, 0);
    if (v->type.shape.rank == 3 && last && last != out->hidden)
        out->vocabulary = last;
}

static void
look_at(struct xm_model_facts *out, const struct xm_graph *g, const struct xm_node *n)
{
    switch (n->op) {
    case XM_OP_ATTENTION:
        add_attention(out, g, n);
        break;
    case XM_OP_MOE:
    case XM_OP_MOE_COMPRESSED:
    case XM_OP_MOE_3GEMM_FUSED_COMPRESSED:
        add_experts(out, n);
        break;
    case XM_OP_GATHER:
        look_at_table(out, n);
        break;
    case XM_OP_SDPA:
        out->layers++;
        break;
    case XM_OP_RESULT:
        look_at_result(out, n);
        break;
    default:
        break;
    }
}

enum xm_status
xm_model_facts(const struct xm_graph *g, struct xm_model_facts *out, struct xm_error *err)
{
    const struct xm_caps any = {0};
    const struct xm_pipeline_options aside = {.is_aside = true};
    struct xm_graph *fused = NULL;
    *out = (struct xm_model_facts){0};
    XM_TRY(xm_graph_clone(g, NULL, &fused, err));
    enum xm_status s = xm_pipeline_run(fused, &any, &aside, NULL, NULL, err);
    if (s == XM_OK)
        count_parameters(fused, out);
    for (const struct xm_node *n = fused->first; n && s == XM_OK; n = n->next)
        look_at(out, fused, n);
    out->family = xm_model_family(fused);
    xm_graph_destroy(fused);
    if (s != XM_OK)
        *out = (struct xm_model_facts){0};
    return s;
}
