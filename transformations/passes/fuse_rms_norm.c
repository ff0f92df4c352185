/* SPDX-License-Identifier: Apache-2.0
 *
 * Root mean square normalisation of the last axis.
 *
 *     x (1 / sqrt(mean(x^2) + epsilon))   ->   rms_norm(x, ones)
 *     gamma rms_norm(x, ones)             ->   rms_norm(x, gamma)
 *     gamma convert(rms_norm(x, ones))    ->   convert(rms_norm(x, gamma))
 *
 * A norm without gamma that several read keeps its ones: it is computed once. gamma is
 * a constant with one element for each of the last axis.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { X, AXES, EPSILON, MEAN, GAMMA, NORM };

static bool
is_mean_of_last_axis(struct xm_match *m)
{
    const struct xm_value *x = m->slot[X];
    if (!m->slot[MEAN]->node->attr.reduce.keep_dims) {
        m->why = "the mean drops its axis";
        return false;
    }
    if (!xm_is_axis(m->slot[AXES], x->type.shape.rank, (int64_t)x->type.shape.rank - 1)) {
        m->why = "the mean is not over the last axis alone";
        return false;
    }
    m->why = "the last dimension is not known";
    return xm_last_dim(x) > 0 && xm_last_dim(x) <= XM_SMALL_BYTES;
}

static struct xm_value *
ones(struct xm_builder *b, int64_t n)
{
    struct xm_type type = {.element = XM_F32,
                           .shape = {.rank = 1, .dim = {xm_dim_const(n)}}};
    uint64_t bytes = (uint64_t)n * sizeof(float);
    float *f = xm_arena_alloc(&b->graph->arena, bytes);
    if (!f) {
        xm_fail(&b->graph->err, XM_NO_MEMORY, "out of memory for the gamma of a norm");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        f[i] = 1.0f;
    return xm_const(b, &type, (struct xm_data){(const uint8_t *)f, bytes});
}

static struct xm_value *
norm(struct xm_builder *b, struct xm_value *x, struct xm_value *gamma, float epsilon)
{
    union xm_attr attr = {.rms_norm = {epsilon}};
    return xm_op_build(b, XM_OP_RMS_NORM, &attr, (struct xm_value *[]){x, gamma}, 2);
}

static struct xm_value *
make_norm(struct xm_builder *b, struct xm_match *m)
{
    float epsilon = 0;
    xm_value_is_scalar_const(m->slot[EPSILON], &epsilon);
    return norm(b, m->slot[X], ones(b, xm_last_dim(m->slot[X])), epsilon);
}

static bool
is_gamma(struct xm_match *m)
{
    uint64_t n;
    const struct xm_value *gamma = m->slot[GAMMA];
    if (!xm_is_filled(xm_in(m->slot[NORM]->node, 1), 1.0f)) {
        m->why = "the norm has a gamma already";
        return false;
    }
    m->why = "the factor does not have one element for each of the last axis";
    return gamma->node->op == XM_OP_CONST && xm_element_is_float(gamma->type.element) &&
           xm_static_elements(&gamma->type.shape, &n) &&
           n == (uint64_t)xm_last_dim(gamma) &&
           xm_last_dim(gamma) == xm_last_dim(&m->root->out[0]) &&
           gamma->type.shape.rank <= m->slot[X]->type.shape.rank;
}

static struct xm_value *
put_gamma(struct xm_builder *b, struct xm_match *m)
{
    float epsilon = m->slot[NORM]->node->attr.rms_norm.epsilon;
    struct xm_value *y = norm(b, m->slot[X], xm_const_flat(b, m->slot[GAMMA]), epsilon);
    enum xm_element to = m->root->out[0].type.element;
    return y && y->type.element != to ? xm_convert(b, y, to) : y;
}

/* clang-format off */
static const struct xm_rule rules[] = {
    { "norm",
      P(MULTIPLY, VAR(X), P(DIVIDE, SCALAR(1), P(SQRT,
          P(ADD, PN(MEAN, REDUCE_MEAN, P(POWER, VAR(X), SCALAR(2)), INTS(AXES)), NUMBER(EPSILON))))),
      NULL, make_norm, is_mean_of_last_axis },
    { "gamma",
      P(MULTIPLY, WEIGHT(GAMMA), PN(NORM, RMS_NORM, VAR(X), VAR(EPSILON))),
      NULL, put_gamma, is_gamma },
    { "gamma behind convert",
      P(MULTIPLY, WEIGHT(GAMMA), P(CONVERT, PN(NORM, RMS_NORM, VAR(X), VAR(EPSILON)))),
      NULL, put_gamma, is_gamma },
};
/* clang-format on */

bool
xm_pass_fuse_rms_norm(struct xm_graph *g, const struct xm_caps *caps)
{
    return xm_rewrite(g, caps, rules, XM_ARRAY_LEN(rules));
}
