/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/models/presets.h"

#include <inttypes.h>
#include <string.h>

#define T(id) (UINT64_C(1) << XM_TENSOR_##id)

static const struct xm_preset presets[] = {
#define PRESET(...) {__VA_ARGS__},
#include "plugin/models/presets.def"
};

const struct xm_preset *
xm_preset_at(size_t i)
{
    return i < XM_ARRAY_LEN(presets) ? &presets[i] : NULL;
}

const struct xm_preset *
xm_preset_find(const char *name)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(presets); i++) {
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    }
    return NULL;
}

static uint32_t
either(uint32_t a, uint32_t b)
{
    return a ? a : b;
}

static void
fill_attention(const struct xm_preset *p, struct xm_decoder *d)
{
    const uint32_t full = either(p->head_dim_full, p->head_dim);
    d->attention[XM_ATTENTION_FULL] = (struct xm_decoder_attention){
        .head_dim = full, .value_dim = full, .rope_dim = full, .rope_base = p->rope_base};
    d->attention[XM_ATTENTION_SLIDING] = (struct xm_decoder_attention){
        .head_dim = p->head_dim,
        .value_dim = p->head_dim,
        .rope_dim = p->head_dim,
        .rope_base = p->rope_base_sliding != 0.0f ? p->rope_base_sliding : p->rope_base,
        .window = p->window};
    if (p->yarn_factor == 0.0f)
        return;
    d->rope_scaling.kind = XM_ROPE_YARN;
    d->rope_scaling.factor = p->yarn_factor;
    d->rope_scaling.original_context = p->yarn_context;
}

static void
fill_layer(const struct xm_preset *p, struct xm_decoder *d, uint32_t i)
{
    struct xm_decoder_layer *l = &d->layer[i];
    const bool slides =
        p->window && p->period && (i + 1) % p->period && i + 1 < p->layers;
    const bool is_sharing = i >= p->layers - p->sharing;
    const bool beside = d->traits & XM_TRAIT_DENSE_BESIDE_EXPERTS;
    l->kind = slides ? XM_ATTENTION_SLIDING : XM_ATTENTION_FULL;
    l->heads = p->heads;
    l->kv_heads = slides ? p->kv_heads : either(p->kv_heads_full, p->kv_heads);
    l->has_experts = p->experts && i >= p->dense_layers;
    if (!l->has_experts || beside)
        l->ffn = is_sharing ? either(p->ffn_of_sharing, p->ffn) : p->ffn;
    l->keys_are_values = p->keys_are_values && !slides;
}

static void
fill_tensors(const struct xm_preset *p, struct xm_decoder *d)
{
    for (uint32_t i = 0; i < d->n_layers; i++)
        d->layer[i].tensors =
            xm_decoder_needs(d, i) | (xm_decoder_may_have(d, i) & p->extra);
    d->tensors = xm_decoder_needs(d, d->n_layers);
    if (!p->is_tied)
        d->tensors |= T(OUTPUT);
    if (d->traits & XM_TRAIT_FACTORS_OF_FULL_LAYERS)
        d->tensors |= T(ROPE_FREQS);
}

enum xm_status
xm_preset_decoder(const struct xm_preset *p, struct xm_arena *arena,
                  struct xm_decoder *out, struct xm_error *err)
{
    const struct xm_architecture *arch = xm_architecture_find(p->arch, strlen(p->arch));
    struct xm_decoder d = {
        .arch = arch,
        .traits = arch->traits,
        .n_layers = p->layers,
        .hidden = p->hidden,
        .vocabulary = p->vocabulary,
        .context = p->context,
        .epsilon = 1e-6f,
        .logit_cap = p->logit_cap,
        .rope_scaling = {.factor = 1.0f, .beta_fast = 32.0f, .beta_slow = 1.0f},
        .experts = p->experts,
        .experts_used = p->top_k,
        .expert_ffn = p->expert_ffn,
        .shared_ffn = p->shared_ffn,
        .gate = arch->gate,
        .weights_scale = p->weights_scale != 0.0f ? p->weights_scale : 1.0f,
        .groups = p->groups,
        .groups_used = p->groups_used,
        .ple = p->ple};
    if (!p->layers || p->layers > 1u << 20)
        return xm_fail(err, XM_INVALID, "%" PRIu32 " layers, expected 1 to %u", p->layers,
                       1u << 20);
    d.layer = xm_arena_alloc(arena, d.n_layers * sizeof(*d.layer));
    if (!d.layer)
        return xm_no_memory(err, "a model's layers");
    fill_attention(p, &d);
    for (uint32_t i = 0; i < d.n_layers; i++)
        fill_layer(p, &d, i);
    XM_TRY(xm_decoder_share_keys(&d, p->sharing, err));
    fill_tensors(p, &d);
    XM_TRY(xm_decoder_check(&d, err));
    *out = d;
    return XM_OK;
}
