/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the tables of rotary embedding one operation.
 *
 *     angle[b,t,i] = positions[b,t] frequencies[i]
 *     s cos(angle), s sin(angle), perhaps twice side by side
 *                                      ->  cos, sin = rope_tables(positions, frequencies)
 *
 * The angles are transpose(frequencies[1,R,1] positions[B,1,T]), or the product of positions
 * [B,T,1] and frequencies [..,R]. They may be doubled before or after the cosine; a factor s may
 * follow it; reshapes that keep the last axis may be anywhere. Positions are integers. Not done:
 * tables with frequencies that depend on the length.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

/* The value at the end of a sequence of scalings, doublings and reshapes, and what they do. */
struct way {
    struct xm_value *end;
    float scale;
    bool twice;
};

/* Whether n is concat(x, x) along the last axis. */
static bool
is_doubled(const struct xm_node *n)
{
    int64_t rank = n->out[0].type.shape.rank, axis = n->attr.axis.axis;
    return n->op == XM_OP_CONCAT && n->n_in == 2 && xm_in(n, 0) == xm_in(n, 1) &&
           (axis == rank - 1 || axis == -1);
}

/* The only node that reads v; NULL: there are several, or none. */
static struct xm_node *
only_user(const struct xm_value *v)
{
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        if (u->user != v->uses->user)
            return NULL;
    }
    return v->uses ? v->uses->user : NULL;
}

/* Whether n only multiplies v by a number, *number. */
static bool
is_scaled(const struct xm_node *n, const struct xm_value *v, float *number)
{
    if (n->op != XM_OP_MULTIPLY || v->n_uses != 1)
        return false;
    const struct xm_value *other = xm_in(n, xm_in(n, 0) == v ? 1 : 0);
    return xm_value_is_scalar_const(other, number) &&
           xm_shape_eq(&v->type.shape, &n->out[0].type.shape);
}

/* Follows the value from a cosine or sine on, as long as it is only scaled, doubled and
 * reshaped. */
static struct way
follow(struct xm_node *n, bool is_double)
{
    struct way way = {&n->out[0], 1.0f, is_double};
    struct xm_value *v = way.end;
    while ((n = only_user(v)) != NULL) {
        float number;
        if (is_scaled(n, v, &number))
            way.scale *= number;
        else if (is_doubled(n) && !way.twice)
            way.twice = true;
        else if (!xm_keeps_rows(n))
            break;
        v = &n->out[0];
        if (!xm_keeps_rows(n))
            way.end = v;
    }
    return way;
}

/* The integers from which v comes by conversions to float and reshapes; NULL: none. */
static struct xm_value *
positions_of(struct xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE ||
           (v->node->op == XM_OP_CONVERT && xm_element_is_float(v->type.element)))
        v = xm_in(v->node, 0);
    enum xm_element e = v->type.element;
    return e == XM_I64 || e == XM_I32 ? v : NULL;
}

/* Whether the axis-th dimension from the end is 1. */
static bool
is_one(const struct xm_value *v, uint32_t axis)
{
    const struct xm_shape *s = &v->type.shape;
    return s->rank >= axis && xm_dim_is(s->dim[s->rank - axis], 1);
}

static bool
are_frequencies(const struct xm_value *v, int64_t n)
{
    uint64_t elements;
    return v->node->op == XM_OP_CONST && xm_element_is_float(v->type.element) &&
           xm_static_elements(&v->type.shape, &elements) && n > 0 &&
           elements == (uint64_t)n;
}

/* Finds positions and frequencies whose product is angle [B,T,R]. */
static bool
find_factors(const struct xm_value *angle, struct xm_value **positions,
             struct xm_value **frequencies)
{
    static const int64_t swap[3] = {0, 2, 1};
    const struct xm_node *n = angle->node;
    int64_t r = xm_last_dim(angle);
    bool turned = n->op == XM_OP_TRANSPOSE && xm_ints_equal(xm_in(n, 1), swap, 3);
    if (turned)
        n = xm_in(n, 0)->node;
    bool is_product = n->op == XM_OP_MATMUL && !n->attr.matmul.transpose_a &&
                      !n->attr.matmul.transpose_b;
    if (angle->type.shape.rank != 3 ||
        (!is_product && (n->op != XM_OP_MULTIPLY || turned)))
        return false;
    struct xm_value *f = xm_in(n, turned ? 0 : 1), *p = xm_in(n, turned ? 1 : 0);
    if (n->op == XM_OP_MULTIPLY && p->node->op == XM_OP_CONST) {
        f = p;
        p = xm_in(n, 1);
    }
    if (!are_frequencies(f, r) || !is_one(p, turned ? 2 : 1) || (turned && !is_one(f, 1)))
        return false;
    *frequencies = f;
    *positions = positions_of(p);
    return *positions != NULL;
}

/* The sine of the value of which n is the cosine; NULL: none. */
static struct xm_node *
sine_beside(const struct xm_node *n)
{
    for (const struct xm_use *u = xm_in(n, 0)->uses; u; u = u->next) {
        if (u->user->op == XM_OP_SIN)
            return u->user;
    }
    return NULL;
}

static bool
build(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *before,
      struct xm_value *angle, const struct way way[2])
{
    struct xm_value *in[2];
    const struct xm_shape tokens = {
        .rank = 2, .dim = {angle->type.shape.dim[0], angle->type.shape.dim[1]}};
    union xm_attr attr = {.rope_tables = {way[0].scale, way[0].twice}};
    struct xm_builder b = xm_builder_before(g, before);
    b.name = before->name;
    if (way[0].scale != way[1].scale || way[0].twice != way[1].twice ||
        !find_factors(angle, &in[0], &in[1]))
        return false;
    in[0] = xm_reshape_like(&b, in[0], &tokens);
    in[1] = xm_const_flat(&b, in[1]);
    if (!in[0] || !in[1])
        return false;
    struct xm_node *tables = xm_fused_build(&b, caps, XM_OP_ROPE_TABLES, &attr, in, 2);
    for (int i = 0; i < 2 && tables; i++) {
        const struct xm_shape *shape = &way[i].end->type.shape;
        struct xm_value *table = xm_reshape_like(&b, &tables->out[i], shape);
        if (!table)
            return false;
        xm_value_replace(g, way[i].end, table);
    }
    return tables != NULL;
}

static bool
fuse(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *cosine)
{
    struct xm_node *sine = sine_beside(cosine);
    struct xm_value *angle = xm_in(cosine, 0);
    bool is_double = false;
    if (!sine || angle->type.element != XM_F32)
        return false;
    while (xm_keeps_rows(angle->node) || (is_doubled(angle->node) && !is_double)) {
        is_double |= is_doubled(angle->node);
        angle = xm_in(angle->node, 0);
    }
    struct way way[2] = {follow(cosine, is_double), follow(sine, is_double)};
    return build(g, caps, cosine, angle, way);
}

bool
xm_pass_fuse_rope_tables(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_COS && n->out[0].n_uses > 0)
            any |= fuse(g, caps, n);
        if (g->err.status != XM_OK)
            return any;
    }
    xm_graph_remove_dead(
        g); /* replaced nodes, and tables that no implementation can run */
    if (any)
        xm_graph_sort(g, &g->err); /* readers of the sine may precede the cosine      */
    return any;
}
