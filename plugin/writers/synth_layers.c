/* SPDX-License-Identifier: Apache-2.0
 *
 * Norm, rotary tables' use, attention with states and its mask, as exporters write them.
 */
#include <math.h>
#include <stdio.h>

#include "plugin/writers/synth.h"
#include "transformations/graph/symbols.h"

struct xm_value *
xm_synth_op(struct xm_synth *s, enum xm_op op, const union xm_attr *attr,
            struct xm_value *const *in, uint32_t n)
{
    return xm_op_build(&s->b, op, attr, in, n);
}

static struct xm_value *
op1(struct xm_synth *s, enum xm_op op, struct xm_value *x)
{
    return xm_op1(&s->b, op, x);
}

static struct xm_value *
op2(struct xm_synth *s, enum xm_op op, struct xm_value *x, struct xm_value *y)
{
    return xm_op2(&s->b, op, x, y);
}

static struct xm_value *
op3(struct xm_synth *s, enum xm_op op, struct xm_value *x, struct xm_value *y,
    struct xm_value *z)
{
    struct xm_value *in[3] = {x, y, z};
    return xm_op_build(&s->b, op, NULL, in, 3);
}

static struct xm_value *
int_scalar(struct xm_synth *s, int64_t v)
{
    return xm_synth_int(s, XM_I64, v);
}

static struct xm_value *
int_one(struct xm_synth *s, int64_t v)
{
    return xm_synth_ints(s, XM_I64, 1, &v);
}

struct xm_value *
xm_synth_reshape(struct xm_synth *s, struct xm_value *x, bool special_zero, int n,
                 const int64_t *target)
{
    struct xm_value *in[2] = {x, xm_synth_ints(s, XM_I64, n, target)};
    const union xm_attr attr = {.reshape = {special_zero}};
    return xm_op_build(&s->b, XM_OP_RESHAPE, &attr, in, 2);
}

struct xm_value *
xm_synth_norm(struct xm_synth *s, struct xm_value *x, uint32_t n)
{
    uint32_t rank = x ? x->type.shape.rank : 0;
    struct xm_value *square = op2(s, XM_OP_POWER, x, xm_synth_filled(s, rank, 1, 2.0f));
    struct xm_value *mean_in[2] = {square, int_one(s, -1)};
    const union xm_attr keep = {.reduce = {true}};
    struct xm_value *mean = xm_op_build(&s->b, XM_OP_REDUCE_MEAN, &keep, mean_in, 2);
    struct xm_value *sum = op2(s, XM_OP_ADD, mean, xm_synth_filled(s, rank, 1, 1e-6f));
    struct xm_value *one = xm_synth_filled(s, rank, 1, 1.0f);
    struct xm_value *root = op2(s, XM_OP_DIVIDE, one, op1(s, XM_OP_SQRT, sum));
    struct xm_value *unit = op2(s, XM_OP_MULTIPLY, x, root);
    return op2(s, XM_OP_MULTIPLY, xm_synth_filled(s, rank, n, 1.0f), unit);
}

/* ---- shapes ---- */

struct xm_value *
xm_synth_shape_of(struct xm_synth *s, struct xm_value *x, enum xm_element e)
{
    const union xm_attr attr = {.convert = {e}};
    return xm_op_build(&s->b, XM_OP_SHAPE_OF, &attr, &x, 1);
}

/* Dimension `axis` of x as an i64 scalar. */
static struct xm_value *
dim_of(struct xm_synth *s, struct xm_value *x, int64_t axis)
{
    return op3(s, XM_OP_GATHER, xm_synth_shape_of(s, x, XM_I64), int_scalar(s, axis),
               int_scalar(s, 0));
}

static struct xm_value *
as_vector(struct xm_synth *s, struct xm_value *scalar)
{
    const int64_t one = 1;
    return xm_synth_reshape(s, scalar, false, 1, &one);
}

struct xm_value *
xm_synth_concat(struct xm_synth *s, int64_t axis, struct xm_value *const *in, uint32_t n)
{
    const union xm_attr attr = {.axis = {axis}};
    return xm_op_build(&s->b, XM_OP_CONCAT, &attr, in, n);
}

static struct xm_value *
broadcast(struct xm_synth *s, struct xm_value *x, struct xm_value *target, int mode)
{
    struct xm_value *in[2] = {x, target};
    const union xm_attr attr = {.broadcast = {mode}};
    return xm_op_build(&s->b, XM_OP_BROADCAST, &attr, in, 2);
}

static struct xm_value *
transpose(struct xm_synth *s, struct xm_value *x)
{
    static const int64_t order[4] = {0, 2, 1, 3};
    return op2(s, XM_OP_TRANSPOSE, x, xm_synth_ints(s, XM_I32, 4, order));
}

/* ---- states ---- */

/* What a state holds, in the order of the beams: [B,Hkv,past,D]. */
static struct xm_value *
read_state(struct xm_synth *s, const struct xm_synth_inputs *in, const char *variable)
{
    const struct xm_synthetic *m = s->m;
    struct xm_value *dims[4] = {in->batch, int_one(s, m->kv_heads), int_one(s, 0),
                                int_one(s, m->head_dim)};
    struct xm_value *zero = xm_const_float(&s->b, XM_F32, 0.0f);
    struct xm_value *init =
        broadcast(s, zero, xm_synth_concat(s, 0, dims, 4), XM_BROADCAST_NUMPY);
    struct xm_type type = {.element = XM_F32,
                           .shape = {.rank = 4,
                                     .dim = {xm_dim_symbol(&s->g->dims, XM_SYMBOL_BATCH),
                                             xm_dim_const(m->kv_heads),
                                             xm_dim_symbol(&s->g->dims, XM_SYMBOL_PAST),
                                             xm_dim_const(m->head_dim)}}};
    struct xm_value *state = init ? xm_read_value(&s->b, variable, &type, init) : NULL;
    return op3(s, XM_OP_GATHER, state, in->beams, int_scalar(s, 0));
}

/* ---- the mask: causal and not padding, made once ---- */

static struct xm_value *
range(struct xm_synth *s, struct xm_value *from, struct xm_value *to)
{
    struct xm_value *in[3] = {from, to, xm_synth_int(s, XM_I32, 1)};
    const union xm_attr attr = {.convert = {XM_I64}};
    return xm_op_build(&s->b, XM_OP_RANGE, &attr, in, 3);
}

static struct xm_value *
unsqueeze(struct xm_synth *s, struct xm_value *x, int64_t axis)
{
    return op2(s, XM_OP_UNSQUEEZE, x, int_scalar(s, axis));
}

/* attention_mask[b, key] as booleans [B,1,1,S], by indexing the flattened mask. */
static struct xm_value *
key_padding(struct xm_synth *s, const struct xm_synth_inputs *in, struct xm_value *keys,
            struct xm_value *batch)
{
    struct xm_value *seen = xm_convert(&s->b, in->mask, XM_BOOL);
    struct xm_value *shape = xm_synth_shape_of(s, seen, XM_I32),
                    *axis = xm_synth_int(s, XM_I32, 0);
    const union xm_attr keep = {.reduce = {true}}, two = {.split = {2}};
    const union xm_attr zeros = {.reshape = {true}};
    struct xm_value *product_in[2] = {shape, axis};
    const int64_t minus_one = -1;
    struct xm_value *flat_dims[2] = {
        xm_op_build(&s->b, XM_OP_REDUCE_PROD, &keep, product_in, 2),
        xm_synth_ints(s, XM_I32, 1, &minus_one)};
    struct xm_value *flat_in[2] = {seen, xm_synth_concat(s, 0, flat_dims, 2)};
    struct xm_value *flat = xm_op_build(&s->b, XM_OP_RESHAPE, &zeros, flat_in, 2);
    struct xm_value *rows = range(s, xm_synth_int(s, XM_I32, 0), batch);
    for (int64_t i = 1; i < 4; i++)
        rows = unsqueeze(s, rows, i);
    struct xm_node *split = xm_node_build(&s->b, XM_OP_SPLIT, &two, product_in, 2);
    if (!split)
        return NULL;
    struct xm_value *first =
        op2(s, XM_OP_MULTIPLY, xm_convert(&s->b, rows, XM_I32), &split->out[1]);
    struct xm_value *index = op2(s, XM_OP_ADD, xm_convert(&s->b, keys, XM_I32), first);
    struct xm_value *picked = op3(s, XM_OP_GATHER, flat, index, axis);
    picked = xm_synth_reshape(s, picked, false, 1, &minus_one);
    return op2(s, XM_OP_RESHAPE, picked, xm_synth_shape_of(s, index, XM_I32));
}

static struct xm_value *
make_mask(struct xm_synth *s, const struct xm_synth_inputs *in,
          struct xm_value *past_keys, struct xm_value *hidden)
{
    struct xm_value *past = dim_of(s, past_keys, 2), *tokens = dim_of(s, hidden, 1);
    struct xm_value *batch = dim_of(s, hidden, 0), *zero = xm_synth_int(s, XM_I32, 0);
    struct xm_value *all = op2(s, XM_OP_ADD, past, tokens);
    struct xm_value *keys = range(s, zero, all);
    for (int64_t i = 0; i < 3; i++)
        keys = unsqueeze(s, keys, i);
    struct xm_value *first =
        op3(s, XM_OP_GATHER, range(s, past, all), int_scalar(s, 0), int_scalar(s, 0));
    struct xm_value *queries = op2(s, XM_OP_ADD, range(s, zero, tokens), first);
    queries = unsqueeze(s, unsqueeze(s, unsqueeze(s, queries, 0), 1), 3);
    struct xm_value *causal = op2(s, XM_OP_LESS_EQUAL, keys, queries);
    struct xm_value *seen =
        op2(s, XM_OP_BITWISE_AND, causal, key_padding(s, in, keys, batch));
    struct xm_value *dims[4] = {as_vector(s, batch), int_one(s, 1), as_vector(s, tokens),
                                as_vector(s, all)};
    seen = broadcast(s, seen, xm_synth_concat(s, 0, dims, 4), XM_BROADCAST_BIDIRECTIONAL);
    return op3(s, XM_OP_SELECT, seen, xm_const_float(&s->b, XM_F32, 0.0f),
               xm_const_float(&s->b, XM_F32, -65504.0f));
}

/* ---- attention ---- */

/* x[..., from : to] on the last axis of rank 4. */
static struct xm_value *
slice_last(struct xm_synth *s, struct xm_value *x, int64_t from, int64_t to)
{
    struct xm_value *in[5] = {x, int_one(s, from), int_one(s, to), int_one(s, 1),
                              int_one(s, 3)};
    return xm_op_build(&s->b, XM_OP_SLICE, NULL, in, 5);
}

static struct xm_value *
rotate(struct xm_synth *s, const struct xm_synth_inputs *in, struct xm_value *x)
{
    int64_t half = s->m->head_dim / 2;
    struct xm_value *minus = xm_convert(&s->b, xm_synth_int(s, XM_I32, -1), XM_F32);
    struct xm_value *halves[2] = {
        op2(s, XM_OP_MULTIPLY, slice_last(s, x, half, INT64_MAX), minus),
        slice_last(s, x, 0, half)};
    struct xm_value *turned =
        op2(s, XM_OP_MULTIPLY, xm_synth_concat(s, -1, halves, 2), in->sin);
    return op2(s, XM_OP_ADD, op2(s, XM_OP_MULTIPLY, x, in->cos), turned);
}

/* A projection of x split into heads, [B,T,heads,D]. */
static struct xm_value *
project(struct xm_synth *s, const char *name, struct xm_value *x, uint32_t heads)
{
    const struct xm_synthetic *m = s->m;
    struct xm_value *w =
        xm_synth_weight(s, name, 0, heads * m->head_dim, m->hidden, m->weights, m->group);
    const int64_t target[4] = {0, 0, heads, m->head_dim};
    return xm_synth_reshape(s, xm_matmul(&s->b, x, w, false, true), true, 4, target);
}

/* Each KV head for every query head of its group: [B,Hkv,S,D] to [B,Hq,S,D]. */
static struct xm_value *
repeat_heads(struct xm_synth *s, struct xm_value *x)
{
    const struct xm_synthetic *m = s->m;
    const int64_t pair[2] = {0, 1}, target[4] = {0, m->heads, -1, m->head_dim};
    struct xm_value *shape = xm_synth_shape_of(s, x, XM_I64);
    struct xm_value *lead =
        op3(s, XM_OP_GATHER, shape, xm_synth_ints(s, XM_I64, 2, pair), int_scalar(s, 0));
    struct xm_value *keys = as_vector(s, dim_of(s, x, 2));
    struct xm_value *dims[4] = {lead, int_one(s, m->heads / m->kv_heads), keys,
                                int_one(s, m->head_dim)};
    struct xm_value *five = unsqueeze(s, x, 2);
    five = broadcast(s, five, xm_synth_concat(s, 0, dims, 4), XM_BROADCAST_BIDIRECTIONAL);
    return xm_synth_reshape(s, five, true, 4, target);
}

struct xm_value *
xm_synth_attention(struct xm_synth *s, struct xm_synth_inputs *in, uint32_t layer,
                   struct xm_value *x)
{
    const struct xm_synthetic *m = s->m;
    char key[64], value[64];
    snprintf(key, sizeof(key), "past_key_values.%u.keypresent.%u.key", layer, layer);
    snprintf(value, sizeof(value), "past_key_values.%u.valuepresent.%u.value", layer,
             layer);
    struct xm_value *q = xm_synth_norm(s, project(s, "q_proj", x, m->heads), m->head_dim);
    struct xm_value *k =
        xm_synth_norm(s, project(s, "k_proj", x, m->kv_heads), m->head_dim);
    struct xm_value *v = transpose(s, project(s, "v_proj", x, m->kv_heads));
    q = rotate(s, in, transpose(s, q));
    k = rotate(s, in, transpose(s, k));
    struct xm_value *keys[2] = {read_state(s, in, key), k};
    struct xm_value *values[2] = {read_state(s, in, value), v};
    if (!in->attention_mask)
        in->attention_mask = make_mask(s, in, keys[0], x);
    k = xm_synth_concat(s, -2, keys, 2);
    v = xm_synth_concat(s, -2, values, 2);
    if (!k || !v || !xm_assign(&s->b, key, k) || !xm_assign(&s->b, value, v))
        return NULL;
    float scale = 1.0f / sqrtf((float)m->head_dim);
    struct xm_value *sdpa[5] = {q, repeat_heads(s, k), repeat_heads(s, v),
                                in->attention_mask, xm_const_float(&s->b, XM_F32, scale)};
    struct xm_value *out = transpose(s, xm_op_build(&s->b, XM_OP_SDPA, NULL, sdpa, 5));
    const int64_t target[3] = {0, 0, (int64_t)m->heads * m->head_dim};
    out = xm_synth_reshape(s, out, true, 3, target);
    struct xm_value *w = xm_synth_weight(s, "o_proj", 0, m->hidden,
                                         m->heads * m->head_dim, m->weights, m->group);
    return xm_matmul(&s->b, out, w, false, true);
}
