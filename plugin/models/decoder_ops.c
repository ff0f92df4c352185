/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/models/decoder_graph.h"

struct xm_value *
xm_dg_tensor(struct xm_decoder_graph *s, enum xm_decoder_tensor t, uint32_t layer)
{
    char name[64];
    xm_decoder_tensor_name(t, layer, name);
    struct xm_builder b = s->b;
    b.name = xm_arena_strdup(&s->g->arena, name);
    return b.name ? s->weights->get(s->weights->ctx, &b, t, layer) : NULL;
}

struct xm_value *
xm_dg_op3(struct xm_decoder_graph *s, enum xm_op op, struct xm_value *x,
          struct xm_value *y, struct xm_value *z)
{
    struct xm_value *in[3] = {x, y, z};
    return xm_op_build(&s->b, op, NULL, in, 3);
}

struct xm_value *
xm_dg_int(struct xm_decoder_graph *s, int64_t v)
{
    return xm_const_ints(&s->b, XM_I64, &v, -1);
}

struct xm_value *
xm_dg_one(struct xm_decoder_graph *s, int64_t v)
{
    return xm_const_ints(&s->b, XM_I64, &v, 1);
}

/* ---- shapes -------------------------------------------------------------------------- */

struct xm_value *
xm_dg_concat(struct xm_decoder_graph *s, int64_t axis, struct xm_value *const *in,
             uint32_t n)
{
    const union xm_attr attr = {.axis = {axis}};
    return xm_op_build(&s->b, XM_OP_CONCAT, &attr, in, n);
}

struct xm_value *
xm_dg_shape_of(struct xm_decoder_graph *s, struct xm_value *x, enum xm_element e)
{
    const union xm_attr attr = {.convert = {e}};
    return xm_op_build(&s->b, XM_OP_SHAPE_OF, &attr, &x, 1);
}

struct xm_value *
xm_dg_dim_of(struct xm_decoder_graph *s, struct xm_value *x, int64_t axis)
{
    return xm_dg_op3(s, XM_OP_GATHER, xm_dg_shape_of(s, x, XM_I64), xm_dg_int(s, axis),
                     xm_dg_int(s, 0));
}

struct xm_value *
xm_dg_as_vector(struct xm_decoder_graph *s, struct xm_value *scalar)
{
    const int64_t one = 1;
    return xm_dg_reshape(s, scalar, false, 1, &one);
}

struct xm_value *
xm_dg_reshape(struct xm_decoder_graph *s, struct xm_value *x, bool special_zero, int n,
              const int64_t *target)
{
    struct xm_value *in[2] = {x, xm_const_ints(&s->b, XM_I64, target, n)};
    const union xm_attr attr = {.reshape = {special_zero}};
    return xm_op_build(&s->b, XM_OP_RESHAPE, &attr, in, 2);
}

struct xm_value *
xm_dg_unsqueeze(struct xm_decoder_graph *s, struct xm_value *x, int64_t axis)
{
    return xm_op2(&s->b, XM_OP_UNSQUEEZE, x, xm_dg_int(s, axis));
}

struct xm_value *
xm_dg_broadcast(struct xm_decoder_graph *s, struct xm_value *x, struct xm_value *target,
                int mode)
{
    struct xm_value *in[2] = {x, target};
    const union xm_attr attr = {.broadcast = {mode}};
    return xm_op_build(&s->b, XM_OP_BROADCAST, &attr, in, 2);
}

struct xm_value *
xm_dg_reduce_sum(struct xm_decoder_graph *s, struct xm_value *x, int64_t axis, bool keep)
{
    struct xm_value *in[2] = {x, xm_dg_one(s, axis)};
    const union xm_attr attr = {.reduce = {keep}};
    return xm_op_build(&s->b, XM_OP_REDUCE_SUM, &attr, in, 2);
}

struct xm_value *
xm_dg_slice(struct xm_decoder_graph *s, struct xm_value *x, int64_t axis, int64_t from,
            int64_t to)
{
    struct xm_value *in[5] = {x, xm_dg_one(s, from), xm_dg_one(s, to), xm_dg_one(s, 1),
                              xm_dg_one(s, axis)};
    return xm_op_build(&s->b, XM_OP_SLICE, NULL, in, 5);
}

struct xm_value *
xm_dg_swap_heads(struct xm_decoder_graph *s, struct xm_value *x)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    return xm_op2(&s->b, XM_OP_TRANSPOSE, x, xm_const_ints(&s->b, XM_I32, order, 4));
}

/* ---- arithmetic ---------------------------------------------------------------------- */

struct xm_value *
xm_dg_scale(struct xm_decoder_graph *s, struct xm_value *x, float factor)
{
    return xm_op2(&s->b, XM_OP_MULTIPLY, x, xm_const_float(&s->b, XM_F32, factor));
}

struct xm_value *
xm_dg_product(struct xm_decoder_graph *s, enum xm_decoder_tensor w, uint32_t layer,
              struct xm_value *x)
{
    return xm_matmul(&s->b, x, xm_dg_tensor(s, w, layer), false, true);
}

struct xm_value *
xm_dg_biased(struct xm_decoder_graph *s, enum xm_decoder_tensor w,
             enum xm_decoder_tensor bias, uint32_t layer, struct xm_value *x)
{
    x = xm_dg_product(s, w, layer, x);
    if (!xm_decoder_has(s->d, bias, layer))
        return x;
    return xm_op2(&s->b, XM_OP_ADD, x, xm_dg_tensor(s, bias, layer));
}

struct xm_value *
xm_dg_unit(struct xm_decoder_graph *s, struct xm_value *x)
{
    struct xm_builder *b = &s->b;
    struct xm_value *square = xm_op2(b, XM_OP_POWER, x, xm_const_float(b, XM_F32, 2.0f));
    struct xm_value *mean_in[2] = {square, xm_dg_one(s, -1)};
    const union xm_attr keep = {.reduce = {true}};
    struct xm_value *mean = xm_op_build(b, XM_OP_REDUCE_MEAN, &keep, mean_in, 2);
    struct xm_value *sum =
        xm_op2(b, XM_OP_ADD, mean, xm_const_float(b, XM_F32, s->d->epsilon));
    struct xm_value *root = xm_op2(b, XM_OP_DIVIDE, xm_const_float(b, XM_F32, 1.0f),
                                   xm_op1(b, XM_OP_SQRT, sum));
    return xm_op2(b, XM_OP_MULTIPLY, x, root);
}

struct xm_value *
xm_dg_norm(struct xm_decoder_graph *s, enum xm_decoder_tensor gamma, uint32_t layer,
           struct xm_value *x)
{
    return xm_op2(&s->b, XM_OP_MULTIPLY, xm_dg_unit(s, x), xm_dg_tensor(s, gamma, layer));
}

struct xm_value *
xm_dg_activation(struct xm_decoder_graph *s, struct xm_value *x)
{
    const union xm_attr tanh = {.gelu = {XM_GELU_TANH}};
    if (s->d->traits & XM_TRAIT_GELU)
        return xm_op_build(&s->b, XM_OP_GELU, &tanh, &x, 1);
    return xm_op1(&s->b, XM_OP_SWISH, x);
}
