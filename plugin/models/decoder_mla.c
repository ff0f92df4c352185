/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention (MLA), expanded to plain heads:
 *
 *     q = Wqb norm(Wqa x)  or  Wq x            for each head [unrotated, rotated]
 *     [c, r] = Wa x;  c = norm(c)              the latent, which a cache could keep
 *     [k, v] = Wb c                            for each head; its keys are [k, rotate(r)]
 *
 * Keys and values are cached per head, so that the attention itself is the same as in other
 * architectures.
 */
#include <math.h>

#include "plugin/models/decoder_graph.h"

/* Rotates the last columns of x [B,heads,T,D]. */
static struct xm_value *
rotate_last(struct xm_decoder_graph *s, enum xm_attention_kind kind, struct xm_value *x)
{
    const struct xm_decoder_attention *a = &s->d->attention[kind];
    const int64_t from = (int64_t)a->head_dim - a->rope_dim;
    struct xm_value *parts[2] = {
        xm_dg_slice(s, x, 3, 0, from),
        xm_dg_rotate(s, kind, xm_dg_slice(s, x, 3, from, INT64_MAX), a->rope_dim)};
    return xm_dg_concat(s, -1, parts, 2);
}

struct xm_value *
xm_dg_latent_queries(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const int64_t heads[4] = {0, 0, l->heads, s->d->attention[l->kind].head_dim};
    if (s->d->q_rank) {
        x = xm_dg_norm(s, XM_TENSOR_ATTN_Q_A_NORM, layer,
                       xm_dg_product(s, XM_TENSOR_ATTN_Q_A, layer, x));
        x = xm_dg_product(s, XM_TENSOR_ATTN_Q_B, layer, x);
    } else {
        x = xm_dg_product(s, XM_TENSOR_ATTN_Q, layer, x);
    }
    x = xm_dg_swap_heads(s, xm_dg_reshape(s, x, true, 4, heads));
    return rotate_last(s, l->kind, x);
}

/* Repeats r [B,1,T,R] for each head. */
static struct xm_value *
for_each_head(struct xm_decoder_graph *s, const struct xm_decoder_layer *l,
              struct xm_value *r)
{
    struct xm_value *dims[4] = {xm_dg_as_vector(s, xm_dg_dim_of(s, r, 0)),
                                xm_dg_one(s, l->heads),
                                xm_dg_as_vector(s, xm_dg_dim_of(s, r, 2)),
                                xm_dg_one(s, s->d->attention[l->kind].rope_dim)};
    return xm_dg_broadcast(s, r, xm_dg_concat(s, 0, dims, 4), XM_BROADCAST_BIDIRECTIONAL);
}

/* Computes for each head the unrotated columns of the keys, and the values, [B,heads,T,size]. */
static struct xm_dg_keys
expand(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *c)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const struct xm_decoder_attention *a = &s->d->attention[l->kind];
    const int64_t unrotated = (int64_t)a->head_dim - a->rope_dim;
    const int64_t both[4] = {0, 0, l->heads, unrotated + a->value_dim};
    const int64_t k[4] = {0, 0, l->heads, unrotated},
                  v[4] = {0, 0, l->heads, a->value_dim};
    if (xm_decoder_has(s->d, XM_TENSOR_ATTN_KV_B, layer)) {
        struct xm_value *x = xm_dg_product(s, XM_TENSOR_ATTN_KV_B, layer, c);
        x = xm_dg_swap_heads(s, xm_dg_reshape(s, x, true, 4, both));
        return (struct xm_dg_keys){xm_dg_slice(s, x, 3, 0, unrotated),
                                   xm_dg_slice(s, x, 3, unrotated, INT64_MAX)};
    }
    struct xm_value *keys = xm_dg_product(s, XM_TENSOR_ATTN_K_B, layer, c);
    struct xm_value *values = xm_dg_product(s, XM_TENSOR_ATTN_V_B, layer, c);
    return (struct xm_dg_keys){xm_dg_swap_heads(s, xm_dg_reshape(s, keys, true, 4, k)),
                               xm_dg_swap_heads(s, xm_dg_reshape(s, values, true, 4, v))};
}

struct xm_dg_keys
xm_dg_latent_keys(struct xm_decoder_graph *s, uint32_t layer, struct xm_value *x)
{
    const struct xm_decoder_layer *l = &s->d->layer[layer];
    const uint32_t rope_dim = s->d->attention[l->kind].rope_dim;
    const int64_t one_head[4] = {0, 0, 1, rope_dim};
    x = xm_dg_product(s, XM_TENSOR_ATTN_KV_A, layer, x);
    struct xm_value *c = xm_dg_norm(s, XM_TENSOR_ATTN_KV_A_NORM, layer,
                                    xm_dg_slice(s, x, 2, 0, s->d->kv_rank));
    struct xm_value *r = xm_dg_slice(s, x, 2, s->d->kv_rank, INT64_MAX);
    r = xm_dg_swap_heads(s, xm_dg_reshape(s, r, true, 4, one_head));
    r = xm_dg_rotate(s, l->kind, r, rope_dim);
    struct xm_dg_keys own = expand(s, layer, c);
    struct xm_value *parts[2] = {own.keys, for_each_head(s, l, r)};
    own.keys = xm_dg_concat(s, -1, parts, 2);
    return own;
}

float
xm_dg_latent_scale(const struct xm_decoder_graph *s, uint32_t layer)
{
    const struct xm_decoder *d = s->d;
    const float size = (float)d->attention[d->layer[layer].kind].head_dim;
    const float given = d->rope_scaling.attention_factor;
    float m = given != 0.0f ? given : 1.0f;
    if (d->rope_scaling.kind == XM_ROPE_YARN)
        m *= 1.0f + d->rope_scaling.log_multiplier * logf(d->rope_scaling.factor);
    return m * m / sqrtf(size);
}
