/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the dequantisation of a constant by one weight node.
 *
 *     reshape((convert(q) - zp) * scale)   ->   weight { q, scale, zp, group }
 *
 * with or without zero point, reshapes (grouped [.., K/G, G] to [.., K]) and converts; scale and
 * zero point for each group, each row, or all elements. These ops keep the order of elements, so
 * only the last shape and the number of elements that share a scale matter. q are integers, small
 * floats, or gather(codebook, indices of 4 bits). A second scale, q * scale * scale2 or q * (scale
 * * scale2), with one number for each expert becomes the factor of small floats; any other is
 * multiplied into a copy of the scales. A plain float constant that a matmul (transposed) or a
 * gather reads becomes a weight without scale. matmul(x, transpose(w)) reads w transposed; a plain
 * constant that is not transposed is transposed in a copy in the graph's memory.
 *
 * Only operands of matmul and gather, and large constants, become weights; small vectors are left
 * to fold_constants. Not done: division by scales, and zero points with other groups than the
 * scales; validate refuses these if they are large.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum {
    MOST_SCALES = 2,
    CHAIN_LENGTH = 16,             /* most ops of a chain; exporters' are shorter      */
    WIDEN_BYTES = 16 * 1024 * 1024 /* most bytes of f32 that one constant may become   */
};

struct scale {
    const struct xm_node *node; /* constant                */
    uint64_t group;             /* consecutive elements that share a scale */
};

struct chain {
    const struct xm_node *data, *zero_point, *codebook; /* constants; NULL: absent */
    struct scale scale[MOST_SCALES];
    uint32_t n_scales;
    enum xm_element read_as;   /* type to which the data are converted first */
    uint64_t zero_point_group; /* consecutive elements that share a zero point */
    int left;                  /* ops that the chain may still have */
};

static bool
keeps_flat_order(enum xm_op op)
{
    return op == XM_OP_CONVERT || op == XM_OP_RESHAPE || op == XM_OP_SQUEEZE ||
           op == XM_OP_UNSQUEEZE;
}

/* The constant from which v comes by converts and reshapes only; NULL: v has another origin. */
static const struct xm_node *
constant_below(const struct xm_value *v)
{
    for (int i = 0; i < CHAIN_LENGTH; i++) {
        if (v->node->op == XM_OP_CONST)
            return xm_element_readable(v->type.element) ? v->node : NULL;
        if (!keeps_flat_order(v->node->op))
            return NULL;
        v = xm_in(v->node, 0);
    }
    return NULL;
}

/* Sets *group to the number of consecutive elements of `full` that share an element of `part`.
 * False: `part` is not `full` with some of the last dimensions 1. */
static bool
shared_elements(const struct xm_shape *full, const struct xm_shape *part, uint64_t *group)
{
    uint32_t missing = full->rank - part->rank, i = full->rank;
    if (part->rank > full->rank)
        return false;
    for (*group = 1; i > 0; i--) {
        bool one = i - 1 < missing || xm_dim_is(part->dim[i - 1 - missing], 1);
        if (!one)
            break;
        if (!xm_mul_size(*group, (uint64_t)full->dim[i - 1].n, group))
            return false;
    }
    for (; i > 0; i--)
        if (i - 1 < missing || !xm_dim_eq(full->dim[i - 1], part->dim[i - 1 - missing]))
            return false;
    return true;
}

static bool read_chain(const struct xm_value *v, struct chain *c);

/* Adds a constant by which `full` is multiplied to the scales of the chain. */
static bool
add_scale(const struct xm_shape *full, const struct xm_value *v, struct chain *c)
{
    struct scale s = {.node = constant_below(v)};
    if (!s.node || c->n_scales == MOST_SCALES ||
        !xm_element_is_float(s.node->out[0].type.element) ||
        !shared_elements(full, &v->type.shape, &s.group))
        return false;
    c->scale[c->n_scales++] = s;
    return true;
}

/* As add_scale, for a constant or a product of two constants. */
static bool
add_scales(const struct xm_shape *full, const struct xm_value *v, struct chain *c)
{
    if (add_scale(full, v, c))
        return true;
    for (int i = 0; i < CHAIN_LENGTH && v->node->op == XM_OP_CONVERT; i++)
        v = xm_in(v->node, 0);
    return v->node->op == XM_OP_MULTIPLY && add_scale(full, xm_in(v->node, 0), c) &&
           add_scale(full, xm_in(v->node, 1), c);
}

/* Reads a multiply: operand i is the scale, the other one the rest of the chain. */
static bool
read_scale(const struct xm_value *v, uint32_t i, struct chain *c)
{
    const struct xm_value *factor = xm_in(v->node, i), *rest = xm_in(v->node, 1 - i);
    struct chain try = *c;
    if (!xm_shape_eq(&rest->type.shape, &v->type.shape) ||
        !add_scales(&v->type.shape, factor, &try) || !read_chain(rest, &try))
        return false;
    const enum xm_element e = try.data->out[0].type.element;
    if (xm_element_is_float(e) && !xm_element_is_small_float(e))
        return false;
    *c = try;
    return true;
}

/* Reads gather(table of at most 16 numbers, indices of 4 bits). */
static bool
read_codebook(const struct xm_node *n, struct chain *c)
{
    const struct xm_value *table = xm_in(n, 0);
    uint64_t numbers;
    c->codebook = constant_below(table);
    c->data = constant_below(xm_in(n, 1));
    if (!c->codebook || !c->data || n->attr.gather.batch_dims != 0 ||
        !xm_is_axis(xm_in(n, 2), 1, 0) || table->type.shape.rank != 1 ||
        !xm_static_elements(&table->type.shape, &numbers) ||
        numbers > XM_CODEBOOK_NUMBERS)
        return false;
    const enum xm_element e = c->data->out[0].type.element;
    /* i4: -1 is index 15, the last of 16 */
    return e == XM_U4 || (e == XM_I4 && numbers == XM_CODEBOOK_NUMBERS);
}

static bool
read_zero_point(const struct xm_value *v, struct chain *c)
{
    const struct xm_value *rest = xm_in(v->node, 0), *zero = xm_in(v->node, 1);
    c->zero_point = constant_below(zero);
    return c->zero_point && xm_shape_eq(&rest->type.shape, &v->type.shape) &&
           shared_elements(&v->type.shape, &zero->type.shape, &c->zero_point_group) &&
           read_chain(rest, c);
}

static bool
read_chain(const struct xm_value *v, struct chain *c)
{
    uint64_t n;
    if (c->left-- == 0 || !xm_static_elements(&v->type.shape, &n))
        return false;
    switch (v->node->op) {
    case XM_OP_CONST:
        c->data = v->node;
        return xm_element_readable(v->type.element) && v->type.element != XM_BOOL;
    case XM_OP_CONVERT:
        if (!xm_element_is_float(v->type.element))
            return false;
        if (xm_in(v->node, 0)->node->op == XM_OP_CONST)
            c->read_as = v->type.element;
        return read_chain(xm_in(v->node, 0), c);
    case XM_OP_RESHAPE:
    case XM_OP_SQUEEZE:
    case XM_OP_UNSQUEEZE:
        return read_chain(xm_in(v->node, 0), c);
    case XM_OP_MULTIPLY:
        return !c->zero_point && (read_scale(v, 1, c) || read_scale(v, 0, c));
    case XM_OP_SUBTRACT:
        return !c->zero_point && read_zero_point(v, c);
    case XM_OP_GATHER:
        return !c->zero_point && read_codebook(v->node, c);
    default:
        return false;
    }
}

static struct xm_bytes
bytes_of(const struct xm_node *n)
{
    return (struct xm_bytes){n->attr.data.bytes, n->attr.data.n_bytes};
}

/* Allocates n numbers of f32 in the arena, as *out. */
static float *
new_numbers(struct xm_graph *g, uint64_t n, struct xm_bytes *out)
{
    uint64_t bytes;
    float *numbers =
        xm_mul_size(n, sizeof(float), &bytes) ? xm_arena_alloc(&g->arena, bytes) : NULL;
    if (!numbers)
        xm_no_memory(&g->err, "the scales of a weight");
    else
        *out = (struct xm_bytes){(const uint8_t *)numbers, bytes};
    return numbers;
}

static float
scale_of_element(const struct scale *s, uint64_t element)
{
    const struct xm_value *v = &s->node->out[0];
    return xm_load_float(v->type.element, s->node->attr.data.bytes, element / s->group);
}

/* Writes the scales as f32, one for each group (at most a row): because kernels cannot read their
 * type, they span several rows, or there are two. g NULL: copies nothing. */
static bool
copy_scales(struct xm_graph *g, const struct chain *c, uint64_t n, struct xm_weight *w)
{
    w->group = w->group < w->cols ? w->group : w->cols;
    w->scale_element = XM_F32;
    if (!g)
        return true;
    float *copy = new_numbers(g, n / w->group, &w->scale);
    for (uint64_t i = 0; copy && i < n / w->group; i++) {
        copy[i] = 1.0f;
        for (uint32_t s = 0; s < c->n_scales; s++)
            copy[i] *= scale_of_element(&c->scale[s], i * w->group);
    }
    return copy != NULL;
}

/* Makes the weight's factors from a scale that is constant within each expert. */
static bool
set_factor(struct xm_graph *g, const struct scale *s, struct xm_weight *w)
{
    float *factor = g ? new_numbers(g, w->experts, &w->factor) : NULL;
    for (uint64_t e = 0; factor && e < w->experts; e++)
        factor[e] = scale_of_element(s, e * w->rows * w->cols);
    return !g || factor;
}

static bool
set_codebook(struct xm_graph *g, const struct xm_node *table, struct xm_weight *w)
{
    const struct xm_type *t = &table->out[0].type;
    const uint64_t numbers =
        (uint64_t)table->attr.data.n_bytes * 8 / xm_element_bits(t->element);
    static const float none[XM_CODEBOOK_NUMBERS];
    w->element = XM_U4;
    w->codebook = (struct xm_bytes){(const uint8_t *)none, sizeof(none)};
    float *copy = g ? new_numbers(g, XM_CODEBOOK_NUMBERS, &w->codebook) : NULL;
    for (uint64_t i = 0; copy && i < XM_CODEBOOK_NUMBERS; i++)
        copy[i] =
            i < numbers ? xm_load_float(t->element, table->attr.data.bytes, i) : 0.0f;
    return !g || copy;
}

static bool
set_zero_point(const struct chain *c, uint64_t n, struct xm_weight *w)
{
    if (!c->zero_point)
        return true;
    w->zero_point = bytes_of(c->zero_point);
    w->zero_point_element = c->zero_point->out[0].type.element;
    w->zero_point_is_scalar =
        c->zero_point_group == n && (w->group != n || w->group > w->cols);
    return w->zero_point_is_scalar ||
           (c->zero_point_group == w->group && w->group <= w->cols);
}

/* Sets scales, factor and zero points of the weight. g NULL: only tests whether that is possible,
 * and copies nothing. */
static bool
set_quantisation(struct xm_graph *g, struct chain *c, uint64_t n, struct xm_weight *w)
{
    struct scale *fine = &c->scale[0], *coarse = &c->scale[1];
    if (c->n_scales == 2 && fine->group > coarse->group) {
        const struct scale other = *fine;
        *fine = *coarse;
        *coarse = other;
    }
    if (c->n_scales == 2 && xm_element_is_small_float(w->element) &&
        coarse->group % (w->rows * w->cols) == 0) {
        c->n_scales = 1;
        if (!set_factor(g, coarse, w))
            return false;
    }
    w->group = fine->group;
    if (w->group <= w->cols ? w->cols % w->group != 0 : w->group % w->cols != 0)
        return false;
    if (!set_zero_point(c, n, w) ||
        (c->n_scales == 2 && coarse->group % fine->group != 0))
        return false;
    w->scale = bytes_of(fine->node);
    w->scale_element = fine->node->out[0].type.element;
    return (c->n_scales == 1 && w->group <= w->cols &&
            xm_weight_takes_scales(w, w->scale_element)) ||
           copy_scales(g, c, n, w);
}

/* Makes nf4 a codebook of numbers rounded to f16. OpenVINO does so for tables, also in products
 * with them, and for matrices without scales; it multiplies other nf4 unrounded. */
static bool
round_numbers(struct xm_graph *g, struct xm_weight *w)
{
    const uint8_t codes[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
    float *numbers = new_numbers(g, XM_CODEBOOK_NUMBERS, &w->codebook);
    for (uint64_t i = 0; numbers && i < XM_CODEBOOK_NUMBERS; i++)
        numbers[i] = xm_half_to_float(xm_float_to_half(xm_load_float(XM_NF4, codes, i)));
    w->element = XM_U4;
    return numbers != NULL;
}

/* Whether v is the dequantisation of one weight, which becomes *w. g NULL: no copies are made, and
 * *w must not be used. */
static bool
read_weight(struct xm_graph *g, const struct xm_value *v, bool rounds,
            struct xm_weight *w)
{
    struct chain c = {.left = CHAIN_LENGTH};
    const struct xm_shape *s = &v->type.shape;
    uint64_t n;
    if (s->rank < 1 || s->rank > 3 || !xm_element_is_float(v->type.element) ||
        !read_chain(v, &c) || !xm_static_elements(s, &n) || n == 0)
        return false;
    *w = (struct xm_weight){.element = c.data->out[0].type.element,
                            .rank = s->rank,
                            .experts = s->rank > 2 ? (uint64_t)s->dim[0].n : 1,
                            .rows = s->rank > 1 ? (uint64_t)s->dim[s->rank - 2].n : 1,
                            .cols = (uint64_t)s->dim[s->rank - 1].n,
                            .data = bytes_of(c.data)};
    if (c.codebook && !set_codebook(g, c.codebook, w))
        return false;
    if (!c.n_scales && (c.zero_point || !(xm_element_is_float(w->element) || c.codebook)))
        return false;
    if (c.n_scales && !set_quantisation(g, &c, n, w))
        return false;
    if (rounds && c.read_as == XM_F16 && !round_numbers(g, w))
        return false;
    return !g || xm_weight_check(w) == NULL;
}

static bool
is_weight_operand(const struct xm_use *u, const struct xm_weight *w)
{
    const struct xm_node *n = u->user;
    if (n->op == XM_OP_MATMUL)
        return xm_use_index(u) == 1 && w->rank >= 2 &&
               (xm_weight_is_quantised(w) || xm_weight_is_codes(w) ||
                n->attr.matmul.transpose_b);
    return n->op == XM_OP_GATHER && xm_use_index(u) == 0 && w->rank == 2 &&
           xm_is_axis(xm_in(n, 2), 2, 0);
}

/* Whether the user belongs to the dequantisation, too, so that the chain does not end here. */
static bool
continues(const struct xm_use *u)
{
    struct xm_weight w;
    enum xm_op op = u->user->op;
    return ((keeps_flat_order(op) && xm_use_index(u) == 0) || op == XM_OP_MULTIPLY) &&
           read_weight(NULL, &u->user->out[0], false, &w);
}

static bool
wants_weight(const struct xm_use *u, const struct xm_weight *w)
{
    uint64_t bytes = w->experts * w->rows * w->cols * sizeof(float);
    return is_weight_operand(u, w) ||
           ((xm_weight_is_quantised(w) || xm_weight_is_codes(w)) &&
            bytes > XM_SMALL_BYTES && !continues(u));
}

static bool
is_table(const struct xm_value *v)
{
    for (const struct xm_use *u = v->uses; u; u = u->next)
        if (u->user->op == XM_OP_GATHER && xm_use_index(u) == 0)
            return true;
    return false;
}

static bool
fold_value(struct xm_graph *g, struct xm_value *v)
{
    struct xm_weight w;
    struct xm_value *folded = NULL;
    if (!v->uses || !read_weight(NULL, v, false, &w))
        return false;
    const bool rounds =
        w.element == XM_NF4 && (is_table(v) || !xm_weight_is_quantised(&w));
    for (struct xm_use *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (!wants_weight(u, &w))
            continue;
        struct xm_builder b = xm_builder_before(g, v->node);
        if (!folded && read_weight(g, v, rounds, &w))
            folded = xm_weight(&b, &w, v->type.element);
        if (!folded)
            return false;
        xm_node_set_in(u->user, xm_use_index(u), folded);
    }
    if (folded)
        xm_node_remove_dead(g, v->node);
    return folded != NULL;
}

/* convert(c) -> constant of f32, for a large c that is not the matrix of a product. */
static bool
widen_constant(struct xm_graph *g, struct xm_node *n)
{
    const struct xm_value *c = xm_in(n, 0);
    struct xm_value *v = &n->out[0];
    uint64_t elements, bytes;
    if (c->node->op != XM_OP_CONST || !xm_element_is_float(c->type.element) ||
        v->type.element != XM_F32 || !xm_static_elements(&v->type.shape, &elements) ||
        !xm_mul_size(elements, sizeof(float), &bytes) || bytes <= XM_SMALL_BYTES ||
        bytes > WIDEN_BYTES)
        return false;
    for (const struct xm_use *u = v->uses; u; u = u->next)
        if (!(xm_op_info(u->user->op)->flags & XM_OPF_ELTWISE))
            return false;
    struct xm_builder b = xm_builder_before(g, n);
    struct xm_value *wide = xm_const_as_f32(&b, c, &v->type.shape);
    if (!wide)
        return false;
    xm_value_replace(g, v, wide);
    xm_node_remove_dead(g, n);
    return true;
}

/* matmul(x, transpose(w)) -> matmul(x, w) with transpose_b inverted. */
static bool
turn_matmul(struct xm_node *n)
{
    struct chain c = {.left = CHAIN_LENGTH};
    struct xm_node *t = xm_in(n, 1)->node;
    int64_t order[3];
    if (t->op != XM_OP_TRANSPOSE || !read_chain(xm_in(t, 0), &c))
        return false;
    int rank = xm_value_const_ints(xm_in(t, 1), order, 3);
    if (rank < 2 || order[rank - 1] != rank - 2 || order[rank - 2] != rank - 1)
        return false;
    xm_node_set_in(n, 1, xm_in(t, 0));
    n->attr.matmul.transpose_b = !n->attr.matmul.transpose_b;
    return true;
}

/* matmul(x, c) -> matmul(x, c transposed) with transpose_b, because weights are stored with one row
 * for each output. Other users of c keep c. */
static bool
turn_constant(struct xm_graph *g, struct xm_node *n)
{
    const struct xm_value *v = xm_in(n, 1);
    const struct xm_value *c = v->node->op == XM_OP_CONVERT ? xm_in(v->node, 0) : v;
    const uint32_t bits = xm_element_bits(c->type.element);
    uint64_t elements;
    if (n->attr.matmul.transpose_a || n->attr.matmul.transpose_b ||
        xm_in(n, 0)->type.shape.rank < 2 || c->node->op != XM_OP_CONST ||
        c->type.shape.rank != 2 || !xm_element_is_float(c->type.element) ||
        !xm_element_is_float(v->type.element) || (bits != 16 && bits != 32) ||
        !xm_static_elements(&c->type.shape, &elements) || elements == 0)
        return false;
    struct xm_builder b = xm_builder_before(g, n);
    struct xm_value *turned = xm_const_transposed(&b, c);
    if (turned && v != c)
        turned = xm_convert(&b, turned, v->type.element);
    if (!turned)
        return false;
    xm_node_set_in(n, 1, turned);
    n->attr.matmul.transpose_b = true;
    xm_node_remove_dead(g, v->node);
    return true;
}

bool
xm_pass_fold_dequantize(struct xm_graph *g, const struct xm_caps *caps)
{
    (void)caps;
    bool any = false;
    xm_for_each_node_safe(n, g)
    {
        if (n->op == XM_OP_MATMUL)
            any |= turn_matmul(n) || turn_constant(g, n);
    }
    xm_for_each_node_safe(n, g)
    {
        bool changed = false;
        if (n->op == XM_OP_CONST || n->op == XM_OP_MULTIPLY || n->op == XM_OP_CONVERT ||
            n->op == XM_OP_RESHAPE || n->op == XM_OP_SQUEEZE ||
            n->op == XM_OP_UNSQUEEZE || n->op == XM_OP_GATHER)
            changed = fold_value(g, &n->out[0]);
        if (!changed && n->op == XM_OP_CONVERT && n->out[0].n_uses)
            changed = widen_constant(g, n);
        any |= changed;
        if (g->err.status != XM_OK)
            break;
    }
    return any;
}
