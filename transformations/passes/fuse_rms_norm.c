/* SPDX-License-Identifier: Apache-2.0
 *
 * Root mean square normalisation of the last axis.
 *
 *     x (1 / sqrt(mean(x^2) + epsilon))   ->   rms_norm(x, ones)
 *     gamma rms_norm(x, ones)             ->   rms_norm(x, gamma)
 *     gamma convert(rms_norm(x, ones))    ->   convert(rms_norm(x, gamma))
 *
 * If several nodes read a norm without gamma, it keeps gamma = ones, so that it is computed once.
 * gamma is a constant with one element for each of the last axis.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { X, AXES, EPSILON, MEAN, GAMMA, NORM, ONES };

static bool
is_mean_of_last_axis(struct xm_match *m)
{
    const struct xm_value *x = m->slot[X];
    if (!m->slot[MEAN]->node->attr.reduce.keep_dims)
        return refuse(m, "the mean does not keep its axis");
    if (!xm_is_axis(m->slot[AXES], x->type.shape.rank, (int64_t)x->type.shape.rank - 1))
        return refuse(m, "the mean does not run over the last axis alone");
    m->why = "the last dimension is not constant";
    return xm_last_dim(x) > 0 && xm_last_dim(x) <= XM_SMALL_BYTES;
}

static struct xm_value *
ones(struct xm_builder *b, struct xm_match *m)
{
    int64_t n = xm_last_dim(m->slot[X]);
    struct xm_type type = {.element = XM_F32,
                           .shape = {.rank = 1, .dim = {xm_dim_const(n)}}};
    uint64_t bytes = (uint64_t)n * sizeof(float);
    float *f = xm_arena_alloc(&b->graph->arena, bytes);
    if (!f) {
        xm_no_memory(&b->graph->err, "the gamma of a norm");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        f[i] = 1.0f;
    return xm_const(b, &type, (struct xm_data){(const uint8_t *)f, bytes});
}

static void
set_epsilon(const struct xm_match *m, union xm_attr *attr)
{
    xm_value_is_scalar_const(m->slot[EPSILON], &attr->rms_norm.epsilon);
}

static bool
is_gamma(struct xm_match *m)
{
    const struct xm_value *gamma = m->slot[GAMMA];
    if (!xm_is_filled(m->slot[ONES], 1.0f))
        return refuse(m, "the norm has a weight already");
    m->why = "the weight does not have one element for each element of the last axis";
    return xm_is_row(gamma, xm_last_dim(&m->root->out[0])) &&
           gamma->type.shape.rank <= m->slot[X]->type.shape.rank;
}

/* clang-format off */
#define BARE_NORM PN(NORM, RMS_NORM, VAR(X), VAR(ONES))
#define WITH_GAMMA N(NORM, RMS_NORM, AT(1, FLAT(GAMMA))), .condition = is_gamma
const struct xm_rule xm_rules_fuse_rms_norm[] = {
    { "norm",
      P(MULTIPLY, VAR(X), P(DIVIDE, SCALAR(1), P(SQRT,
          P(ADD, PN(MEAN, REDUCE_MEAN, P(POWER, VAR(X), SCALAR(2)), INTS(AXES)), NUMBER(EPSILON))))),
      P(RMS_NORM, VAR(X), MAKE(ones)), .attr = set_epsilon, .condition = is_mean_of_last_axis },
    { "gamma", P(MULTIPLY, WEIGHT(GAMMA), BARE_NORM), WITH_GAMMA },
    { "gamma behind convert", P(MULTIPLY, WEIGHT(GAMMA), P(CONVERT, BARE_NORM)), WITH_GAMMA },
    { .name = NULL },
};
/* clang-format on */
