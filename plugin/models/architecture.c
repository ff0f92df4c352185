/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of architectures, tensors and sizes, and the sets of tensors that a decoder needs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/models/decoder.h"

_Static_assert(XM_TENSORS <= 64, "sets of tensors are 64 bits");

enum size {
#define SIZE(id, text, value) SIZE_##id,
#include "plugin/models/sizes.def"
    SIZES
};

#define SCOPE_MODEL false
#define SCOPE_LAYER true
const struct xm_tensor_info xm_tensor_infos[XM_TENSORS] = {
#define TENSOR(id, scope, name, kind, rank, n0, n1, n2)                                  \
    {name, SCOPE_##scope, XM_TENSOR_##kind, rank, {SIZE_##n0, SIZE_##n1, SIZE_##n2}},
#include "plugin/models/tensors.def"
};

/* ---- architectures ------------------------------------------------------------------- */

#define T(id) (UINT64_C(1) << XM_TENSOR_##id)
/* The table names traits without their prefix. */
enum {
#define TRAIT(id) id = XM_TRAIT_##id,
#include "plugin/models/traits.def"
};

static const struct xm_architecture architectures[] = {
#define ARCHITECTURE(name, config, gate, traits, has, may)                               \
    {name, config, XM_GATE_##gate, traits, has, may},
#include "plugin/models/architectures.def"
};

const struct xm_architecture *
xm_architecture_find(const char *name, size_t n)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(architectures); i++) {
        if (strlen(architectures[i].name) == n &&
            memcmp(architectures[i].name, name, n) == 0)
            return &architectures[i];
    }
    return NULL;
}

const char *
xm_architecture_names(void)
{
    static const char names[] = ""
#define ARCHITECTURE(name, config, gate, traits, has, may) ", " name
#include "plugin/models/architectures.def"
        ;
    return names + 2;
}

/* ---- which tensors there are --------------------------------------------------------- */

/* The tensors of the parts of a layer. */
static const uint64_t attention = T(ATTN_NORM) | T(ATTN_OUT);
static const uint64_t own_keys = T(ATTN_K) | T(ATTN_V);
static const uint64_t latent_keys = T(ATTN_KV_A) | T(ATTN_KV_A_NORM);
static const uint64_t latent_queries = T(ATTN_Q_A) | T(ATTN_Q_A_NORM) | T(ATTN_Q_B);
static const uint64_t own_keys_extras = T(ATTN_K_BIAS) | T(ATTN_V_BIAS) | T(ATTN_K_NORM);
static const uint64_t dense = T(FFN_GATE) | T(FFN_UP) | T(FFN_DOWN);
static const uint64_t experts = T(ROUTER) | T(GATE_EXPS) | T(UP_EXPS) | T(DOWN_EXPS);
static const uint64_t experts_extras = T(ROUTER_BIAS) | T(CHOICE_BIAS) | T(EXPERT_SCALE) |
                                       T(GATE_EXPS_BIAS) | T(UP_EXPS_BIAS) |
                                       T(DOWN_EXPS_BIAS);
static const uint64_t beside_experts =
    T(ROUTER_SCALE) | T(POST_FFN_NORM_1) | T(PRE_FFN_NORM_2) | T(POST_FFN_NORM_2);
static const uint64_t shared_expert = T(GATE_SHEXP) | T(UP_SHEXP) | T(DOWN_SHEXP);
static const uint64_t layer_embeddings = T(PLE_GATE) | T(PLE_PROJ) | T(PLE_POST_NORM);

/* Returns those of the tensors `set` (of an architecture's row) whose part layer l has. */
static uint64_t
of_parts(const struct xm_decoder *d, const struct xm_decoder_layer *l, uint64_t set)
{
    if (!l->has_experts)
        set &= ~experts_extras;
    if (!l->has_experts || !d->shared_ffn)
        set &= ~T(SHEXP_SWITCH);
    if (l != &d->layer[l->kv_layer])
        set &= ~own_keys_extras;
    if (l->keys_are_values)
        set &= ~T(ATTN_V_BIAS);
    return set;
}

uint64_t
xm_decoder_needs(const struct xm_decoder *d, uint32_t layer)
{
    if (layer == d->n_layers) {
        const uint64_t ple =
            d->ple ? T(PLE_EMBD) | T(PLE_MODEL_PROJ) | T(PLE_PROJ_NORM) : 0;
        return T(TOKEN_EMBD) | T(OUTPUT_NORM) | ple;
    }
    const struct xm_decoder_layer *l = &d->layer[layer];
    uint64_t set = attention | of_parts(d, l, d->arch->has);
    set |= d->traits & XM_TRAIT_FFN_NORM_IS_POST_ATTN ? T(POST_ATTN_NORM) : T(FFN_NORM);
    set |= d->q_rank ? latent_queries : T(ATTN_Q);
    if (l->kv_layer == layer)
        set |= d->traits & XM_TRAIT_LATENT ? latent_keys : own_keys;
    if (l->keys_are_values)
        set &= ~T(ATTN_V);
    if (l->ffn)
        set |= dense;
    if (l->has_experts)
        set |= experts;
    if (l->has_experts && (d->traits & XM_TRAIT_DENSE_BESIDE_EXPERTS))
        set |= beside_experts;
    if (l->has_experts && d->shared_ffn)
        set |= shared_expert;
    return set | (d->ple ? layer_embeddings : 0);
}

uint64_t
xm_decoder_may_have(const struct xm_decoder *d, uint32_t layer)
{
    if (layer == d->n_layers)
        return T(OUTPUT) | T(ROPE_FREQS);
    return of_parts(d, &d->layer[layer], d->arch->may);
}

static uint64_t
size_of(const struct xm_decoder *d, const struct xm_decoder_layer *l, int size)
{
    switch ((enum size)size) {
#define SIZE(id, text, value)                                                            \
    case SIZE_##id:                                                                      \
        return value;
#include "plugin/models/sizes.def"
    case SIZES:
        break;
    }
    return 0;
}

void
xm_decoder_dims(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer,
                uint64_t dim[3])
{
    const struct xm_decoder_layer *l = &d->layer[layer < d->n_layers ? layer : 0];
    for (int i = 0; i < 3; i++)
        dim[i] = size_of(d, l, xm_tensor_infos[t].size[i]);
}

void
xm_decoder_tensor_name(enum xm_decoder_tensor t, uint32_t layer, char name[64])
{
    if (xm_tensor_infos[t].is_of_layer)
        snprintf(name, 64, "blk.%" PRIu32 ".%s", layer, xm_tensor_infos[t].name);
    else
        snprintf(name, 64, "%s", xm_tensor_infos[t].name);
}

/* ---- layers that read another's keys --------------------------------------------------- */

enum xm_status
xm_decoder_share_keys(struct xm_decoder *d, uint32_t n_shared, struct xm_error *err)
{
    uint32_t last[XM_ATTENTION_KINDS] = {UINT32_MAX, UINT32_MAX};
    if (n_shared >= d->n_layers)
        return xm_fail(
            err, XM_INVALID,
            "number of layers that share keys: expected fewer than all %" PRIu32
            " layers, found %" PRIu32,
            d->n_layers, n_shared);
    for (uint32_t i = 0; i < d->n_layers; i++) {
        struct xm_decoder_layer *l = &d->layer[i];
        if (i < d->n_layers - n_shared)
            last[l->kind] = i;
        if (last[l->kind] == UINT32_MAX)
            return xm_fail(
                err, XM_INVALID,
                "layer %" PRIu32
                " shares the keys of an earlier layer of its kind, but there is none",
                i);
        l->kv_layer = last[l->kind];
    }
    return XM_OK;
}

/* ---- what no decoder has ------------------------------------------------------------- */

static enum xm_status
check_attention(const struct xm_decoder *d, uint32_t layer, struct xm_error *err)
{
    const struct xm_decoder_layer *l = &d->layer[layer];
    const struct xm_decoder_attention *a = &d->attention[l->kind];
    if (!l->heads || !l->kv_heads || l->heads % l->kv_heads)
        return xm_fail(err, XM_INVALID,
                       "layer %" PRIu32 ": %" PRIu32
                       " query heads are not a multiple of %" PRIu32 " KV heads",
                       layer, l->heads, l->kv_heads);
    if (!a->head_dim || !a->value_dim)
        return xm_fail(err, XM_INVALID, "layer %" PRIu32 ": the head size is 0", layer);
    if (l->keys_are_values && a->value_dim != a->head_dim)
        return xm_fail(err, XM_INVALID,
                       "layer %" PRIu32 ": values have size %" PRIu32
                       ", expected the size of the keys, %" PRIu32
                       ", because the keys serve as values",
                       layer, a->value_dim, a->head_dim);
    if (l->kv_layer > layer || d->layer[l->kv_layer].kind != l->kind ||
        d->layer[l->kv_layer].kv_layer != l->kv_layer ||
        d->layer[l->kv_layer].kv_heads != l->kv_heads)
        return xm_fail(err, XM_INVALID,
                       "layer %" PRIu32 " shares the keys of layer %" PRIu32
                       ", which has no keys of the same kind",
                       layer, l->kv_layer);
    return XM_OK;
}

static enum xm_status
check_latent(const struct xm_decoder *d, uint32_t layer, struct xm_error *err)
{
    const struct xm_decoder_layer *l = &d->layer[layer];
    const struct xm_decoder_attention *a = &d->attention[l->kind];
    if (!(d->traits & XM_TRAIT_LATENT))
        return XM_OK;
    if (!d->kv_rank || a->rope_dim >= a->head_dim || l->kv_layer != layer)
        return xm_fail(err, XM_INVALID,
                       "layer %" PRIu32 ": keys of size %" PRIu32 " with %" PRIu32
                       " rotated columns, from a latent of size %" PRIu32
                       "; expected a latent of the layer's own, and keys larger than "
                       "their rotated columns",
                       layer, a->head_dim, a->rope_dim, d->kv_rank);
    return XM_OK;
}

static enum xm_status
check_rope(const struct xm_decoder *d, uint32_t layer, struct xm_error *err)
{
    const struct xm_decoder_attention *a = &d->attention[d->layer[layer].kind];
    if (!a->rope_dim || a->rope_dim % 2 || a->rope_dim > a->head_dim)
        return xm_fail(
            err, XM_INVALID,
            "layer %" PRIu32 ": %" PRIu32
            " rotated columns, expected an even number up to the head size, %" PRIu32,
            layer, a->rope_dim, a->head_dim);
    if (!(a->rope_base >= 1.0f))
        return xm_fail(err, XM_INVALID,
                       "layer %" PRIu32
                       ": the base of rotary positions is %g, expected 1 or more",
                       layer, (double)a->rope_base);
    /* there is one list of frequency factors, for the pairs that full layers rotate */
    if (d->tensors & T(ROPE_FREQS) && !(d->traits & XM_TRAIT_FACTORS_OF_FULL_LAYERS) &&
        a->rope_dim != d->attention[XM_ATTENTION_FULL].rope_dim)
        return xm_fail(err, XM_INVALID,
                       "layer %" PRIu32 ": %" PRIu32 " rotated columns, expected %" PRIu32
                       ", for which the model has frequency factors",
                       layer, a->rope_dim, d->attention[XM_ATTENTION_FULL].rope_dim);
    return XM_OK;
}

/* Checks the ends of YaRN's ramp, which goes from pairs that turn often to pairs that turn
 * rarely. */
static enum xm_status
check_scaling(const struct xm_decoder *d, struct xm_error *err)
{
    const float fast = d->rope_scaling.beta_fast, slow = d->rope_scaling.beta_slow;
    if (d->rope_scaling.kind == XM_ROPE_YARN && !(fast > 0 && slow > 0))
        return xm_fail(err, XM_INVALID,
                       "YaRN's ramp runs from %g to %g turns, expected numbers above 0",
                       (double)fast, (double)slow);
    return XM_OK;
}

static enum xm_status
check_experts(const struct xm_decoder *d, struct xm_error *err)
{
    if (!d->expert_ffn)
        return xm_fail(err, XM_INVALID, "the width of the experts is 0");
    if (!d->experts_used || d->experts_used > d->experts)
        return xm_fail(err, XM_INVALID,
                       "a token uses %" PRIu32 " of %" PRIu32
                       " experts, expected at least 1 and at most all",
                       d->experts_used, d->experts);
    if (d->groups > 1 &&
        (d->experts % d->groups || !d->groups_used || d->groups_used > d->groups ||
         d->experts_used > d->experts / d->groups * d->groups_used))
        return xm_fail(err, XM_INVALID,
                       "%" PRIu32 " of %" PRIu32 " experts in %" PRIu32 " of %" PRIu32
                       " groups cannot be chosen",
                       d->experts_used, d->experts, d->groups_used, d->groups);
    return XM_OK;
}

enum xm_status
xm_decoder_check(const struct xm_decoder *d, struct xm_error *err)
{
    bool has_experts = false;
    if (!d->n_layers || !d->hidden || !d->vocabulary)
        return xm_fail(err, XM_INVALID,
                       "%" PRIu32 " layers, hidden size %" PRIu32
                       " and a vocabulary of %" PRIu32 ": each must be at least 1",
                       d->n_layers, d->hidden, d->vocabulary);
    if (!(d->epsilon > 0))
        return xm_fail(err, XM_INVALID, "the norms' epsilon is %g, expected more than 0",
                       (double)d->epsilon);
    if (!(d->logit_cap >= 0))
        return xm_fail(err, XM_INVALID, "logits are capped at %g, expected 0 or more",
                       (double)d->logit_cap);
    XM_TRY(check_scaling(d, err));
    for (uint32_t i = 0; i < d->n_layers; i++) {
        XM_TRY(check_attention(d, i, err));
        XM_TRY(check_rope(d, i, err));
        XM_TRY(check_latent(d, i, err));
        if (!d->layer[i].ffn && !d->layer[i].has_experts)
            return xm_fail(err, XM_INVALID,
                           "layer %" PRIu32 " has neither a feed-forward nor experts", i);
        has_experts = has_experts || d->layer[i].has_experts;
    }
    return has_experts ? check_experts(d, err) : XM_OK;
}
