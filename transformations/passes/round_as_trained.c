/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds to bf16 where training in bf16 rounds and inference in f32 does not (r; only with
 * XM_NUMERICS=bf16):
 *
 *     table[ids] c                        ->  r(table[ids] r(c))
 *     norm(x) s c -> router               ->  r(r(r(norm(x)) s) c) -> router
 *     (norm(W x c) g + table[ids] d) e    ->  r(r(r(norm(r(W x c)) g) + r(table[ids] r(d))) e)
 *
 * The factor of a table is a tensor of the checkpoint and is rounded. Other factors are numbers and
 * are not rounded: the product is computed in f32 and rounded. A norm is computed in f32 and
 * rounded once.
 *
 * A file may have the router's two factors as one: s c with c = n^-1/2. Then s is recovered as a
 * row of bf16. If the norm has other readers, they keep its unrounded value.
 *
 * Not done here: products with matrices, the residual stream, attention, which training rounds
 * as well.
 */
#include <math.h>

#include "transformations/passes/pass_util.h"
#include "transformations/passes/router_product.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/linear_node.h"

enum { MOST_FACTORS = 4 };

static float
round_bf16(float x)
{
    return xm_bf16_to_float(xm_float_to_bf16(x));
}

/* Inserts a rounding after v, for all readers of v. */
static void
round_value(struct xm_graph *g, struct xm_value *v)
{
    struct xm_builder b = xm_builder_before(g, v->node->next);
    struct xm_value *rounded;
    b.name = v->node->name;
    rounded = xm_op1(&b, XM_OP_ROUND_BF16, v);
    if (!rounded)
        return;
    xm_value_replace(g, v, rounded);
    xm_node_set_in(rounded->node, 0, v);
}

/* The value before the reshapes that end in v, if each value on the way has one reader. NULL: some
 * value has several. */
static struct xm_value *
read_once(struct xm_value *v)
{
    while (v->n_uses == 1 && v->node->op == XM_OP_RESHAPE)
        v = xm_in(v->node, 0);
    return v->n_uses == 1 ? v : NULL;
}

/* If n multiplies a value by a number: the value; *factor: the operand that is the number. NULL: it
 * does not. */
static struct xm_value *
scaled(const struct xm_node *n, uint32_t *factor)
{
    float number;
    for (uint32_t i = 0; n->op == XM_OP_MULTIPLY && i < 2; i++) {
        *factor = i;
        if (xm_value_is_scalar_const(xm_in(n, i), &number) &&
            n->out[0].type.element == XM_F32)
            return xm_in(n, 1 - i);
    }
    return NULL;
}

static bool
is_rounded(const struct xm_value *v)
{
    return v->n_uses == 1 && v->uses->user->op == XM_OP_ROUND_BF16;
}

/* ---- rows of a table --------------------------------------------------------------- */

/* Whether v are integers of an input, perhaps after conversions and reshapes. */
static bool
is_input(const struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE || v->node->op == XM_OP_CONVERT)
        v = xm_in(v->node, 0);
    return v->node->op == XM_OP_PARAMETER && xm_element_is_int(v->type.element);
}

/* Whether n is table[ids] c and not rounded yet. */
static bool
is_scaled_lookup(const struct xm_node *n)
{
    uint32_t factor;
    const struct xm_value *rows = scaled(n, &factor);
    return rows && rows->node->op == XM_OP_GATHER &&
           xm_value_is_const(xm_in(rows->node, 0)) &&
           xm_in(rows->node, 0)->type.shape.rank == 2 &&
           xm_is_axis(xm_in(rows->node, 2), 2, 0) && is_input(xm_in(rows->node, 1)) &&
           !is_rounded(&n->out[0]);
}

static void
round_lookup(struct xm_graph *g, struct xm_node *n)
{
    struct xm_builder b = xm_builder_before(g, n);
    float number = 0.0f;
    uint32_t factor;
    scaled(n, &factor);
    xm_value_is_scalar_const(xm_in(n, factor), &number);
    struct xm_value *c = xm_const_float(&b, XM_F32, round_bf16(number));
    if (!c)
        return;
    xm_node_set_in(n, factor, c);
    round_value(g, &n->out[0]);
}

/* ---- a table's rows and a product, for each layer ---------------------------------- */

/* The parts of (norm(W x c) g + table[ids] d) e. */
struct per_layer {
    /* mean: the multiplication by e */
    struct xm_node *context, *norm, *lookup, *sum, *mean;
};

static bool
is_normed_product(struct per_layer *p, struct xm_value *v)
{
    uint32_t factor;
    struct xm_value *x = v && v->node->op == XM_OP_RMS_NORM ? xm_in(v->node, 0) : NULL;
    x = x ? read_once(x) : NULL;
    const struct xm_value *product = x ? scaled(x->node, &factor) : NULL;
    if (!product || !xm_is_linear(product->node))
        return false;
    p->norm = v->node;
    p->context = x->node;
    return true;
}

static bool
is_per_layer(struct xm_node *n, struct per_layer *p)
{
    uint32_t factor;
    struct xm_value *sum = scaled(n, &factor);
    if (!sum || sum->node->op != XM_OP_ADD || sum->n_uses != 1 || is_rounded(&n->out[0]))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        struct xm_value *lookup = read_once(xm_in(sum->node, 1 - i));
        *p = (struct per_layer){.sum = sum->node, .mean = n};
        p->lookup = lookup ? lookup->node : NULL;
        if (lookup && is_scaled_lookup(p->lookup) &&
            is_normed_product(p, read_once(xm_in(sum->node, i))))
            return true;
    }
    return false;
}

static void
round_per_layer(struct xm_graph *g, const struct per_layer *p)
{
    round_value(g, &p->context->out[0]);
    round_value(g, &p->norm->out[0]);
    round_lookup(g, p->lookup);
    round_value(g, &p->sum->out[0]);
    round_value(g, &p->mean->out[0]);
}

/* ---- a router's input -------------------------------------------------------------- */

/* norm(x) f f .. -> product; factor[0] is the last factor. */
struct routing {
    struct xm_node *product, *norm;
    const struct xm_value *factor[MOST_FACTORS];
    uint32_t n_factors;
};

/* The value that v multiplies by a row or a number, *factor; NULL: v is no such product. */
static struct xm_value *
multiplied(const struct xm_value *v, const struct xm_value **factor)
{
    float number;
    for (uint32_t i = 0; v->node->op == XM_OP_MULTIPLY && i < 2; i++) {
        *factor = xm_in(v->node, i);
        if (xm_value_is_scalar_const(*factor, &number) ||
            xm_is_row(*factor, xm_last_dim(v)))
            return xm_in(v->node, 1 - i);
    }
    return NULL;
}

/* Whether n is a router whose product reads a norm with factors that have no other readers. */
static bool
is_routing(const struct xm_node *n, struct routing *r)
{
    *r = (struct routing){.product = xm_router_product(n)};
    struct xm_value *v = r->product ? xm_in(r->product, 0) : NULL;
    while (v && v->n_uses == 1 && r->n_factors < MOST_FACTORS - 1 &&
           v->node->op != XM_OP_RMS_NORM) {
        const struct xm_value *factor = NULL;
        struct xm_value *x =
            xm_keeps_rows(v->node) ? xm_in(v->node, 0) : multiplied(v, &factor);
        if (factor)
            r->factor[r->n_factors++] = factor;
        v = x;
    }
    if (!v || v->node->op != XM_OP_RMS_NORM || v->type.element != XM_F32)
        return false;
    const struct xm_value *gamma = xm_in(v->node, 1);
    const bool has_gamma = !xm_is_filled(gamma, 1.0f);
    if (has_gamma)
        r->factor[r->n_factors++] = gamma;
    r->norm = v->node;
    return r->n_factors > 0 &&
           (!has_gamma || (v->n_uses == 1 && xm_is_row(gamma, xm_last_dim(v))));
}

/* A constant row of f[n], which is in the graph's arena. */
static struct xm_value *
row(struct xm_builder *b, const float *f, int64_t n)
{
    const struct xm_type type = {.element = XM_F32,
                                 .shape = {.rank = 1, .dim = {xm_dim_const(n)}}};
    return xm_const(b, &type,
                    (struct xm_data){(const uint8_t *)f, (uint64_t)n * sizeof(*f)});
}

static float *
new_row(struct xm_builder *b, int64_t n)
{
    float *f = xm_arena_alloc(&b->graph->arena, (uint64_t)n * sizeof(*f));
    if (!f)
        xm_no_memory(&b->graph->err, "the factors of a norm");
    return f;
}

/* Returns s = c n^1/2 rounded to bf16, for the constant row c = v. *is_one: c is not a row of bf16
 * but equals s n^-1/2, up to the rounding error of f16, in which files may store it; so c is the
 * two factors in one. NULL: out of memory. */
static float *
find_scale(struct xm_builder *b, const struct xm_value *v, int64_t n, bool *is_one)
{
    const float root = sqrtf((float)n), of_value = 1.0f / 2048, least = 0x1p-25f;
    float *s = new_row(b, n);
    bool is_plain = true, is_folded = true;
    for (int64_t i = 0; s && i < n; i++) {
        const float c =
            xm_load_float(v->type.element, v->node->attr.data.bytes, (uint64_t)i);
        s[i] = round_bf16(c * root);
        is_plain &= round_bf16(c) == c;
        is_folded &= fabsf(s[i] / root - c) <= fabsf(c) * of_value + least;
    }
    *is_one = is_folded && !is_plain;
    return s;
}

static struct xm_value *
rounded_product(struct xm_builder *b, struct xm_value *x, struct xm_value *factor)
{
    return xm_op1(b, XM_OP_ROUND_BF16, xm_op2(b, XM_OP_MULTIPLY, x, factor));
}

static struct xm_value *
apply_factor(struct xm_builder *b, struct xm_value *x, const struct xm_value *factor)
{
    const int64_t n = xm_last_dim(x);
    float number;
    bool is_folded;
    if (xm_value_is_scalar_const(factor, &number))
        return rounded_product(b, x, xm_const_float(b, XM_F32, number));
    const float *s = find_scale(b, factor, n, &is_folded);
    if (!s || !is_folded)
        return s ? rounded_product(b, x, xm_const_flat(b, factor)) : NULL;
    x = rounded_product(b, x, row(b, s, n));
    return rounded_product(b, x, xm_const_float(b, XM_F32, 1.0f / sqrtf((float)n)));
}

/* The norm without its factors. */
static struct xm_value *
bare_norm(struct xm_builder *b, const struct xm_caps *caps, struct xm_node *norm)
{
    const int64_t n = xm_last_dim(&norm->out[0]);
    if (xm_is_filled(xm_in(norm, 1), 1.0f))
        return &norm->out[0];
    float *ones = new_row(b, n);
    for (int64_t i = 0; ones && i < n; i++)
        ones[i] = 1.0f;
    struct xm_value *in[] = {xm_in(norm, 0), ones ? row(b, ones, n) : NULL};
    struct xm_node *bare =
        ones ? xm_fused_build(b, caps, XM_OP_RMS_NORM, &norm->attr, in, 2) : NULL;
    return bare ? &bare->out[0] : NULL;
}

static bool
round_routing(struct xm_graph *g, const struct xm_caps *caps, struct routing *r)
{
    struct xm_builder b = xm_builder_before(g, r->product);
    const struct xm_value *x = xm_in(r->product, 0);
    struct xm_value *y = bare_norm(&b, caps, r->norm);
    y = y ? xm_op1(&b, XM_OP_ROUND_BF16, y) : NULL;
    while (y && r->n_factors > 0)
        y = apply_factor(&b, y, r->factor[--r->n_factors]);
    y = y ? xm_reshape_like(&b, y, &x->type.shape) : NULL;
    if (y)
        xm_node_set_in(r->product, 0, y);
    return y != NULL;
}

/* ---- the pass ---------------------------------------------------------------------- */

/* Rounds the pattern that ends at n, if any; returns the number of places that were rounded.
 * Per-layer embeddings, which contain a scaled look-up, have been rounded before. */
static uint32_t
round_place(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *n)
{
    struct routing routing;
    if (is_routing(n, &routing))
        return round_routing(g, caps, &routing);
    if (!is_scaled_lookup(n))
        return 0;
    round_lookup(g, n);
    return 1;
}

bool
xm_pass_round_as_trained(struct xm_graph *g, const struct xm_caps *caps)
{
    const uint32_t before = g->n_rounded;
    if (!caps || !caps->rounds_as_trained)
        return false;
    xm_for_each_node(n, g)
    {
        struct per_layer p;
        if (g->err.status == XM_OK && is_per_layer(n, &p)) {
            round_per_layer(g, &p);
            g->n_rounded++;
        }
    }
    for (struct xm_node *n = g->first; n && g->err.status == XM_OK; n = n->next)
        g->n_rounded += round_place(g, caps, n);
    return g->n_rounded > before;
}
