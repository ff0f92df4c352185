/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention with keys and values in states, in the form that exporters write.
 *
 *     o = softmax(scale rope(norm(q)) rope(norm(k))^T + mask) v        (with sinks, if it has any)
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "plugin/models/decoder_graph.h"
#include "transformations/graph/symbols.h"

/* Returns the value of a state, reordered by beam: [B,Hkv,past,size]. */
static struct xm_value *
read_state(struct xm_decoder_graph *s, const char *variable, uint32_t heads,
           uint32_t size)
{
    struct xm_value *dims[4] = {s->batch, xm_dg_one(s, heads), xm_dg_one(s, 0),
                                xm_dg_one(s, size)};
    struct xm_value *init =
        xm_dg_broadcast(s, xm_const_float(&s->b, XM_F32, 0.0f),
                        xm_dg_concat(s, 0, dims, 4), XM_BROADCAST_NUMPY);
    struct xm_dim_pool *pool = &s->g->dims;
    const struct xm_type type = {
        .element = XM_F32,
        .shape = {.rank = 4,
                  .dim = {xm_dim_symbol(pool, XM_SYMBOL_BATCH), xm_dim_const(heads),
                          xm_dim_symbol(pool, XM_SYMBOL_PAST), xm_dim_const(size)}}};
    struct xm_value *state = init ? xm_read_value(&s->b, variable, &type, init) : NULL;
    return xm_dg_op3(s, XM_OP_GATHER, state, s->beams, xm_dg_int(s, 0));
}

/* Appends the new rows to the past ones and assigns the result [B,Hkv,S,size] to the state. */
static struct xm_value *
append(struct xm_decoder_graph *s, const char *variable, struct xm_value *past,
       struct xm_value *added)
{
    struct xm_value *both[2] = {past, added};
    struct xm_value *all = xm_dg_concat(s, -2, both, 2);
    return all && xm_assign(&s->b, variable, all) ? all : NULL;
}

/* Splits a projection of x into heads, [B,T,heads,size]. */
static struct xm_value *
split_heads(struct xm_decoder_graph *s, struct xm_value *x, uint32_t heads, uint32_t size)
{
    const int64_t target[4] = {0, 0, heads, size};
    return xm_dg_reshape(s, x, true, 4, target);
}

/* Splits x into heads and applies the norm, over each head or over all heads, if the layer has its
 * weights. */
static struct xm_value *
normed_heads(struct xm_decoder_graph *s, enum xm_decoder_tensor gamma, uint32_t layer,
             struct xm_value *x, uint32_t heads, uint32_t size)
{
    const bool has_norm = xm_decoder_has(s->d, gamma, layer);
    const bool is_wide = s->d->traits & XM_TRAIT_WIDE_NORMS;
    if (has_norm && is_wide)
        x = xm_dg_norm(s, gamma, layer, x);
    x = split_heads(s, x, heads, size);
    return has_norm && !is_wide ? xm_dg_norm(s, gamma, layer, x) : x;
}

/* Repeats each KV head for the query heads of its group: [B,Hkv,S,size] to [B,Hq,S,size]. */
static struct xm_value *
repeat_heads(struct xm_decoder_graph *s, const struct xm_decoder_layer *l,
             struct xm_value *x, uint32_t size)
{
    const int64_t pair[2] = {0, 1}, target[4] = {0, l->heads, -1, size};
    if (l->heads == l->kv_heads)
        return x;
    struct xm_value *shape = xm_dg_shape_of(s, x, XM_I64);
    struct xm_value *lead = xm_dg_op3(
        s, XM_OP_GATHER, shape, xm_const_ints(&s->b, XM_I64, pair, 2), xm_dg_int(s, 0));
    struct xm_value *dims[4] = {lead, xm_dg_one(s, l->heads / l->kv_heads),
                                xm_dg_as_vector(s, xm_dg_dim_of(s, x, 2)),
                                xm_dg_one(s, size)};
    struct xm_value *five =
        xm_dg_broadcast(s, xm_dg_unsqueeze(s, x, 2), xm_dg_concat(s, 0, dims, 4),
                        XM_BROADCAST_BIDIRECTIONAL);
    return xm_dg_reshape(s, five, true, 4, target);
}

static struct xm_value *
make_queries(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const uint32_t size = s->d->attention[l->kind].head_dim;
    struct xm_value *q =
        xm_dg_biased(s, XM_TENSOR_ATTN_Q, XM_TENSOR_ATTN_Q_BIAS, layer, x);
    q = normed_heads(s, XM_TENSOR_ATTN_Q_NORM, layer, q, l->heads, size);
    return xm_dg_rotate(s, l->kind, xm_dg_swap_heads(s, q), size);
}

static struct xm_dg_keys
make_keys(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const struct xm_decoder_attention *a = &s->d->attention[l->kind];
    struct xm_value *projected =
        xm_dg_biased(s, XM_TENSOR_ATTN_K, XM_TENSOR_ATTN_K_BIAS, layer, x);
    struct xm_value *k = normed_heads(s, XM_TENSOR_ATTN_K_NORM, layer, projected,
                                      l->kv_heads, a->head_dim);
    struct xm_value *v =
        l->keys_are_values
            ? projected
            : xm_dg_biased(s, XM_TENSOR_ATTN_V, XM_TENSOR_ATTN_V_BIAS, layer, x);
    v = split_heads(s, v, l->kv_heads, a->value_dim);
    if (s->d->traits & XM_TRAIT_NORMED_VALUES)
        v = xm_dg_unit(s, v);
    k = xm_dg_rotate(s, l->kind, xm_dg_swap_heads(s, k), a->head_dim);
    return (struct xm_dg_keys){k, xm_dg_swap_heads(s, v)};
}

/* Computes the layer's own keys and values, past and new, and stores them in s->keys and
 * s->values. */
static bool
keep_keys_and_values(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const struct xm_decoder_attention *a = &s->d->attention[l->kind];
    char key[80], value[80];
    snprintf(key, sizeof(key), "past_key_values.%" PRIu32 ".keypresent.%" PRIu32 ".key",
             layer, layer);
    snprintf(value, sizeof(value),
             "past_key_values.%" PRIu32 ".valuepresent.%" PRIu32 ".value", layer, layer);
    const struct xm_dg_keys own = s->d->traits & XM_TRAIT_LATENT
                                      ? xm_dg_latent_keys(s, layer, x)
                                      : make_keys(s, layer, x);
    struct xm_value *past = read_state(s, key, l->kv_heads, a->head_dim);
    if (!past || !xm_dg_mask(s, l->kind, past))
        return false;
    s->keys[layer] = append(s, key, past, own.keys);
    s->values[layer] =
        append(s, value, read_state(s, value, l->kv_heads, a->value_dim), own.values);
    return s->keys[layer] && s->values[layer];
}

struct xm_value *
xm_dg_attention(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const struct xm_decoder_attention *a = &s->d->attention[l->kind];
    const struct xm_shape heads = {
        4, {xm_dim_const(1), xm_dim_const(l->heads), xm_dim_const(1), xm_dim_const(1)}};
    const int64_t merged[3] = {0, 0, (int64_t)l->heads * a->value_dim};
    struct xm_value *q = s->d->traits & XM_TRAIT_LATENT
                             ? xm_dg_latent_queries(s, layer, x)
                             : make_queries(s, layer, x);
    if (l->kv_layer == layer && !keep_keys_and_values(s, layer, x))
        return NULL;
    const bool has_sinks = xm_decoder_has(s->d, XM_TENSOR_ATTN_SINKS, layer);
    const float scale = s->d->traits & XM_TRAIT_UNSCALED_SCORES ? 1.0f
                        : s->d->traits & XM_TRAIT_LATENT
                            ? xm_dg_latent_scale(s, layer)
                            : 1.0f / sqrtf((float)a->head_dim);
    struct xm_value *sinks =
        has_sinks ? xm_dg_tensor(s, XM_TENSOR_ATTN_SINKS, layer) : NULL;
    if (has_sinks && !sinks)
        return NULL;
    struct xm_value *in[6] = {q,
                              repeat_heads(s, l, s->keys[l->kv_layer], a->head_dim),
                              repeat_heads(s, l, s->values[l->kv_layer], a->value_dim),
                              s->seen[l->kind],
                              xm_const_float(&s->b, XM_F32, scale),
                              has_sinks ? xm_const_as_f32(&s->b, sinks, &heads) : NULL};
    x = xm_op_build(&s->b, XM_OP_SDPA, NULL, in, has_sinks ? 6 : 5);
    x = xm_dg_reshape(s, xm_dg_swap_heads(s, x), true, 3, merged);
    return xm_dg_biased(s, XM_TENSOR_ATTN_OUT, XM_TENSOR_ATTN_OUT_BIAS, layer, x);
}
