/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention mask: a query attends to keys that are not after it, that are within its window,
 * and that are not padding.
 */
#include "plugin/models/decoder_graph.h"

static struct xm_value *
range(struct xm_decoder_graph *s, struct xm_value *from, struct xm_value *to)
{
    const int32_t one = 1;
    struct xm_value *in[3] = {from, to,
                              xm_const_ints(&s->b, XM_I32, &(int64_t){one}, -1)};
    const union xm_attr attr = {.convert = {XM_I64}};
    return xm_op_build(&s->b, XM_OP_RANGE, &attr, in, 3);
}

static struct xm_value *
zero(struct xm_decoder_graph *s)
{
    return xm_const_ints(&s->b, XM_I32, &(int64_t){0}, -1);
}

/* Returns attention_mask[b, key] as booleans [B,1,1,S], by indexing the flattened mask. */
static struct xm_value *
key_padding(struct xm_decoder_graph *s, struct xm_value *keys, struct xm_value *batch)
{
    struct xm_builder *b = &s->b;
    struct xm_value *is_seen = xm_convert(b, s->mask, XM_BOOL);
    struct xm_value *shape = xm_dg_shape_of(s, is_seen, XM_I32);
    const union xm_attr keep = {.reduce = {true}}, two = {.split = {2}};
    const union xm_attr zeros = {.reshape = {true}};
    struct xm_value *product_in[2] = {shape, zero(s)};
    const int64_t minus_one = -1;
    struct xm_value *flat_dims[2] = {
        xm_op_build(b, XM_OP_REDUCE_PROD, &keep, product_in, 2),
        xm_const_ints(b, XM_I32, &minus_one, 1)};
    struct xm_value *flat_in[2] = {is_seen, xm_dg_concat(s, 0, flat_dims, 2)};
    struct xm_value *flat = xm_op_build(b, XM_OP_RESHAPE, &zeros, flat_in, 2);
    struct xm_value *rows = range(s, zero(s), batch);
    for (int64_t i = 1; i < 4; i++)
        rows = xm_dg_unsqueeze(s, rows, i);
    struct xm_node *split = xm_node_build(b, XM_OP_SPLIT, &two, product_in, 2);
    if (!split)
        return NULL;
    struct xm_value *first =
        xm_op2(b, XM_OP_MULTIPLY, xm_convert(b, rows, XM_I32), &split->out[1]);
    struct xm_value *index = xm_op2(b, XM_OP_ADD, xm_convert(b, keys, XM_I32), first);
    struct xm_value *picked = xm_dg_op3(s, XM_OP_GATHER, flat, index, zero(s));
    picked = xm_dg_reshape(s, picked, false, 1, &minus_one);
    return xm_op2(b, XM_OP_RESHAPE, picked, xm_dg_shape_of(s, index, XM_I32));
}

/* Compares positions of keys [1,1,1,S] with those of queries [1,1,T,1]: true if the key is not
 * after the query and within the window. */
static struct xm_value *
in_reach(struct xm_decoder_graph *s, struct xm_value *keys, struct xm_value *queries,
         uint32_t window)
{
    struct xm_builder *b = &s->b;
    struct xm_value *causal = xm_op2(b, XM_OP_LESS_EQUAL, keys, queries);
    if (!window)
        return causal;
    struct xm_value *before =
        xm_op2(b, XM_OP_ADD, queries, xm_dg_int(s, -(int64_t)window));
    return xm_op2(b, XM_OP_BITWISE_AND, xm_op2(b, XM_OP_GREATER, keys, before), causal);
}

static struct xm_value *
make_mask(struct xm_decoder_graph *s, uint32_t window, struct xm_value *past_keys)
{
    struct xm_builder *b = &s->b;
    struct xm_value *past = xm_dg_dim_of(s, past_keys, 2);
    struct xm_value *batch = xm_dg_dim_of(s, s->ids, 0);
    struct xm_value *tokens = xm_dg_dim_of(s, s->ids, 1);
    struct xm_value *all = xm_op2(b, XM_OP_ADD, past, tokens);
    struct xm_value *keys = range(s, zero(s), all);
    for (int64_t i = 0; i < 3; i++)
        keys = xm_dg_unsqueeze(s, keys, i);
    struct xm_value *first =
        xm_dg_op3(s, XM_OP_GATHER, range(s, past, all), xm_dg_int(s, 0), xm_dg_int(s, 0));
    struct xm_value *queries = xm_op2(b, XM_OP_ADD, range(s, zero(s), tokens), first);
    queries = xm_dg_unsqueeze(s, xm_dg_unsqueeze(s, queries, 0), 1);
    queries = xm_dg_unsqueeze(s, queries, 3);
    struct xm_value *is_seen =
        xm_op2(b, XM_OP_BITWISE_AND, in_reach(s, keys, queries, window),
               key_padding(s, keys, batch));
    struct xm_value *dims[4] = {xm_dg_as_vector(s, batch), xm_dg_one(s, 1),
                                xm_dg_as_vector(s, tokens), xm_dg_as_vector(s, all)};
    is_seen = xm_dg_broadcast(s, is_seen, xm_dg_concat(s, 0, dims, 4),
                              XM_BROADCAST_BIDIRECTIONAL);
    return xm_dg_op3(s, XM_OP_SELECT, is_seen, xm_const_float(b, XM_F32, 0.0f),
                     xm_const_float(b, XM_F32, -65504.0f));
}

struct xm_value *
xm_dg_mask(struct xm_decoder_graph *s, enum xm_attention_kind kind,
           struct xm_value *past_keys)
{
    if (!s->seen[kind])
        s->seen[kind] = make_mask(s, s->d->attention[kind].window, past_keys);
    return s->seen[kind];
}
