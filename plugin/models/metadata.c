/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/models/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/log.h"
#include "runtime/util/number.h"
#include "runtime/util/utf8.h"

const struct xm_metadata_key xm_metadata_keys[] = {
#define U32                    false, false
#define F32                    true, false
#define NEEDED_U32             false, true
#define NEEDED_F32             true, true
#define KEY(key, type, member) {key, type, offsetof(struct xm_decoder, member)},
#include "plugin/models/metadata.def"
    {NULL, false, false, 0}};

enum { KEY_BYTES = 128 };

/* ---- numbers ------------------------------------------------------------------------- */

/* Writes "<architecture>.<key>" to `out`. */
static void
full_key(const struct xm_decoder *d, const char *key, char out[KEY_BYTES])
{
    snprintf(out, KEY_BYTES, "%s.%s", d->arch->name, key);
}

static enum xm_status
read_number(const struct xm_gguf *g, const struct xm_metadata_key *k,
            struct xm_decoder *d, struct xm_error *err)
{
    char key[KEY_BYTES];
    void *place = (char *)d + k->offset;
    full_key(d, k->key, key);
    if (!k->is_needed && !xm_gguf_find_key(g, key))
        return XM_OK;
    return k->is_float ? xm_gguf_f32(g, key, place, err)
                       : xm_gguf_u32(g, key, place, err);
}

static enum xm_status
read_bool(const struct xm_gguf *g, const struct xm_decoder *d, const char *name,
          bool *out, struct xm_error *err)
{
    char key[KEY_BYTES];
    full_key(d, name, key);
    return xm_gguf_find_key(g, key) ? xm_gguf_bool(g, key, out, err) : XM_OK;
}

static enum xm_status
read_u32(const struct xm_gguf *g, const struct xm_decoder *d, const char *name,
         uint32_t *out, struct xm_error *err)
{
    char key[KEY_BYTES];
    full_key(d, name, key);
    return xm_gguf_find_key(g, key) ? xm_gguf_u32(g, key, out, err) : XM_OK;
}

/* The value of a key for the layers: one for all, or a list with one for each. */
struct of_layers {
    char key[KEY_BYTES];
    bool is_there, is_list;
    struct xm_gguf_values list; /* if is_list */
};

static enum xm_status
find_of_layers(const struct xm_gguf *g, const struct xm_decoder *d, const char *name,
               struct of_layers *out, struct xm_error *err)
{
    full_key(d, name, out->key);
    const struct xm_gguf_key *k = xm_gguf_find_key(g, out->key);
    out->is_there = k != NULL;
    out->is_list = k && k->is_list;
    if (!out->is_list)
        return XM_OK;
    XM_TRY(xm_gguf_list(g, out->key, &out->list, err));
    if (out->list.n != d->n_layers && out->list.n != (uint64_t)d->n_layers + d->n_nextn)
        return xm_fail(err, XM_INVALID,
                       "key '%s': expected one value for each of %" PRIu32
                       " layers, found %" PRIu64,
                       out->key, d->n_layers, out->list.n);
    return XM_OK;
}

/* Reads a key for the layers into the member at `offset` of each layer. */
static enum xm_status
read_of_layers(const struct xm_gguf *g, struct xm_decoder *d, const char *name,
               bool is_needed, size_t offset, struct xm_error *err)
{
    struct of_layers k;
    uint32_t same = 0;
    XM_TRY(find_of_layers(g, d, name, &k, err));
    if (!k.is_there && !is_needed)
        return XM_OK;
    if (!k.is_list)
        XM_TRY(xm_gguf_u32(g, k.key, &same, err));
    for (uint32_t i = 0; i < d->n_layers; i++) {
        uint32_t *place = (uint32_t *)((char *)&d->layer[i] + offset);
        *place = same;
        if (k.is_list)
            XM_TRY(xm_gguf_u32_at(&k.list, i, place, err));
    }
    return XM_OK;
}

/* Keys that change the model and are not supported: a file with another value than `says_nothing`,
 * the neutral one, is refused, because the property would silently be missing. */
static const struct {
    const char *key;
    bool is_bool;
    float says_nothing;
} unread[] = {
    /* clang-format off */
    { "attention.causal",              true,  1.0f },
    { "attention.temperature_scale",   false, 0.0f },
    { "attn_logit_softcapping",        false, 0.0f },
    { "rope.scaling.yarn_ext_factor",  false, 1.0f },
    { "rope.scaling.yarn_attn_factor", false, 1.0f },
    /* clang-format on */
};

static enum xm_status
check_unread(const struct xm_gguf *g, const struct xm_decoder *d, struct xm_error *err)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(unread); i++) {
        char key[KEY_BYTES];
        float x = unread[i].says_nothing;
        bool is_true = x != 0.0f;
        full_key(d, unread[i].key, key);
        if (!xm_gguf_find_key(g, key))
            continue;
        if (unread[i].is_bool) {
            XM_TRY(xm_gguf_bool(g, key, &is_true, err));
            x = is_true;
        } else {
            XM_TRY(xm_gguf_f32(g, key, &x, err));
        }
        if (x != unread[i].says_nothing)
            return xm_fail(err, XM_UNSUPPORTED,
                           "key '%s': only the value %g is supported, found %g", key,
                           (double)unread[i].says_nothing, (double)x);
    }
    return XM_OK;
}

/* ---- kinds of attention -------------------------------------------------------------- */

/* Reads which layers have a sliding window: the key is a list of booleans, or the period, of which
 * the last layer is a full one. */
static enum xm_status
read_pattern(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    struct of_layers k;
    uint32_t period = d->traits & XM_TRAIT_ALTERNATE_WINDOWS ? 2 : 0;
    XM_TRY(find_of_layers(g, d, "attention.sliding_window_pattern", &k, err));
    if (k.is_there && !k.is_list)
        XM_TRY(xm_gguf_u32(g, k.key, &period, err));
    for (uint32_t i = 0; i < d->n_layers; i++) {
        bool slides = period && (i + 1) % period != 0;
        if (k.is_list)
            XM_TRY(xm_gguf_bool_at(&k.list, i, &slides, err));
        if (slides && !d->attention[XM_ATTENTION_SLIDING].window)
            return xm_fail(err, XM_INVALID,
                           "key '%s.attention.sliding_window': layer %" PRIu32
                           " has a window, expected 1 or more, found none or 0",
                           d->arch->name, i);
        d->layer[i].kind = slides ? XM_ATTENTION_SLIDING : XM_ATTENTION_FULL;
    }
    return XM_OK;
}

/* Fills in sizes that the file leaves out: of full layers from the hidden size, of sliding layers
 * from full layers. */
static void
complete_attention(struct xm_decoder *d)
{
    struct xm_decoder_attention *full = &d->attention[XM_ATTENTION_FULL];
    if (!full->head_dim && d->layer[0].heads)
        full->head_dim = d->hidden / d->layer[0].heads;
    for (int i = 0; i < XM_ATTENTION_KINDS; i++) {
        struct xm_decoder_attention *a = &d->attention[i];
        if (!a->head_dim)
            a->head_dim = full->head_dim;
        if (!a->value_dim)
            a->value_dim = a->head_dim == full->head_dim ? full->value_dim : a->head_dim;
        if (!a->value_dim)
            a->value_dim = a->head_dim;
        if (!a->rope_dim)
            a->rope_dim = a->head_dim == full->head_dim && full->rope_dim ? full->rope_dim
                                                                          : a->head_dim;
        if (a->rope_base == 0.0f)
            a->rope_base = full->rope_base != 0.0f ? full->rope_base : 10000.0f;
    }
}

/* Reads the scaling of old files, which have no scaling type: it is linear, and the factor first
 * had another key. */
static enum xm_status
read_old_scaling(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    static const struct xm_metadata_key old = {
        "rope.scale_linear", true, false,
        offsetof(struct xm_decoder, rope_scaling.factor)};
    if (d->rope_scaling.factor == 1.0f)
        XM_TRY(read_number(g, &old, d, err));
    if (d->rope_scaling.factor != 1.0f)
        d->rope_scaling.kind = XM_ROPE_LINEAR;
    return XM_OK;
}

static enum xm_status
read_scaling_type(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    static const char *const names[] = {"none", "linear", "yarn"};
    char key[KEY_BYTES];
    struct xm_slice type;
    full_key(d, "rope.scaling.type", key);
    if (!xm_gguf_find_key(g, key))
        return read_old_scaling(g, d, err);
    XM_TRY(xm_gguf_text(g, key, &type, err));
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        if (xm_slice_equal(type, xm_slice_of(names[i], strlen(names[i])))) {
            d->rope_scaling.kind = (enum xm_rope_scaling)i;
            return XM_OK;
        }
    }
    return xm_fail(err, XM_UNSUPPORTED,
                   "key '%s': scaling of rotary positions by '%s' is not supported, "
                   "expected none, linear or yarn",
                   key, xm_utf8_shown(type).text);
}

static enum xm_status
read_rope_scaling(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    XM_TRY(read_scaling_type(g, d, err));
    if (d->rope_scaling.kind == XM_ROPE_UNSCALED)
        return XM_OK;
    if (d->rope_scaling.kind == XM_ROPE_YARN && !d->rope_scaling.original_context)
        d->rope_scaling.original_context = d->context;
    if (!(d->rope_scaling.factor > 0) ||
        (d->rope_scaling.kind == XM_ROPE_YARN && !d->rope_scaling.original_context))
        return xm_fail(err, XM_INVALID,
                       "rotary positions are scaled by %g from a context of %" PRIu32
                       ", expected numbers above 0",
                       (double)d->rope_scaling.factor, d->rope_scaling.original_context);
    if (d->rope_scaling.log_multiplier != 0.0f && !(d->traits & XM_TRAIT_LATENT))
        return xm_fail(err, XM_UNSUPPORTED,
                       "key '%s.rope.scaling.yarn_log_multiplier': it is supported only "
                       "for models with latent attention",
                       d->arch->name);
    return XM_OK;
}

static enum xm_status
read_attention(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    uint32_t n_shared = 0;
    XM_TRY(read_of_layers(g, d, "attention.head_count", true,
                          offsetof(struct xm_decoder_layer, heads), err));
    for (uint32_t i = 0; i < d->n_layers; i++)
        d->layer[i].kv_heads = d->layer[i].heads;
    XM_TRY(read_of_layers(g, d, "attention.head_count_kv", false,
                          offsetof(struct xm_decoder_layer, kv_heads), err));
    /* the file counts the cached latent as one head; here all heads are expanded */
    for (uint32_t i = 0; i < d->n_layers && (d->traits & XM_TRAIT_LATENT); i++)
        d->layer[i].kv_heads = d->layer[i].heads;
    XM_TRY(read_pattern(g, d, err));
    XM_TRY(read_u32(g, d, "attention.shared_kv_layers", &n_shared, err));
    complete_attention(d);
    XM_TRY(read_rope_scaling(g, d, err));
    const enum xm_status s = xm_decoder_share_keys(d, n_shared, err);
    if (s != XM_OK)
        xm_error_prefix(err, "key '%s.attention.shared_kv_layers'", d->arch->name);
    return s;
}

/* ---- feed-forwards ------------------------------------------------------------------- */

static enum xm_status
read_experts(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    uint32_t gate = d->arch->gate, dense = 0, n_shared = 0;
    bool is_normalised = d->traits & XM_TRAIT_NORMALISED;
    const bool beside = d->traits & XM_TRAIT_DENSE_BESIDE_EXPERTS;
    XM_TRY(read_of_layers(g, d, "feed_forward_length", false,
                          offsetof(struct xm_decoder_layer, ffn), err));
    XM_TRY(read_u32(g, d, "leading_dense_block_count", &dense, err));
    XM_TRY(read_u32(g, d, "expert_gating_func", &gate, err));
    XM_TRY(read_u32(g, d, "expert_shared_count", &n_shared, err));
    XM_TRY(read_bool(g, d, "expert_weights_norm", &is_normalised, err));
    if (gate != 0 && gate >= XM_GATES)
        return xm_fail(err, XM_UNSUPPORTED,
                       "experts are scored by function number %" PRIu32
                       ", expected 1 to %d",
                       gate, XM_GATES - 1);
    d->gate = gate ? (enum xm_decoder_gate)gate : d->arch->gate;
    d->traits = is_normalised ? d->traits | XM_TRAIT_NORMALISED
                              : d->traits & ~(uint32_t)XM_TRAIT_NORMALISED;
    if (d->experts && !d->expert_ffn)
        d->expert_ffn = d->layer[d->n_layers - 1].ffn;
    if (!(d->traits & XM_TRAIT_SHARED_EXPERT) || !d->experts)
        d->shared_ffn = 0;
    else if (!d->shared_ffn) {
        uint64_t width = 0;
        if (!xm_mul_size(n_shared ? n_shared : 1, d->expert_ffn, &width) ||
            width > UINT32_MAX)
            return xm_fail(err, XM_INVALID, "the shared experts are too wide");
        d->shared_ffn = (uint32_t)width;
    }
    for (uint32_t i = 0; i < d->n_layers; i++) {
        d->layer[i].has_experts = d->experts && i >= dense;
        if ((!d->layer[i].has_experts || beside) && !d->layer[i].ffn)
            return xm_fail(err, XM_INVALID,
                           "key '%s.feed_forward_length': layer %" PRIu32
                           " is dense, expected 1 or more, found none or 0",
                           d->arch->name, i);
        if (d->layer[i].has_experts && !beside)
            d->layer[i].ffn = 0;
    }
    return XM_OK;
}

/* Sets the gate of older files, which do not say how experts are scored: a choice bias is used with
 * sigmoids. */
static enum xm_status
complete_gate(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    uint32_t said = 0;
    XM_TRY(read_u32(g, d, "expert_gating_func", &said, err));
    for (uint32_t i = 0; i < d->n_layers && said == 0; i++)
        if (xm_decoder_has(d, XM_TENSOR_CHOICE_BIAS, i))
            d->gate = XM_GATE_SIGMOID;
    return XM_OK;
}

/* ---- the whole ----------------------------------------------------------------------- */

static enum xm_status
find_architecture(const struct xm_gguf *g, struct xm_decoder *d, struct xm_error *err)
{
    struct xm_slice name;
    XM_TRY(xm_gguf_text(g, "general.architecture", &name, err));
    d->arch = xm_architecture_find(name.text, name.n);
    if (!d->arch)
        return xm_fail(
            err, XM_UNSUPPORTED,
            "the architecture '%s' is not supported; supported architectures are %s",
            xm_utf8_shown(name).text, xm_architecture_names());
    return XM_OK;
}

enum xm_status
xm_metadata_read(const struct xm_gguf *g, struct xm_arena *arena, struct xm_decoder *out,
                 struct xm_error *err)
{
    struct xm_decoder d = {
        .weights_scale = 1.0f,
        .rope_scaling = {.factor = 1.0f, .beta_fast = 32.0f, .beta_slow = 1.0f}};
    XM_TRY(find_architecture(g, &d, err));
    d.traits = d.arch->traits;
    for (const struct xm_metadata_key *k = xm_metadata_keys; k->key; k++)
        XM_TRY(read_number(g, k, &d, err));
    XM_TRY(check_unread(g, &d, err));
    /* every layer has tensors, so more layers than tensors are an error; this bounds memory */
    if (!d.n_layers || d.n_layers > g->n_tensors)
        return xm_fail(err, XM_INVALID,
                       "%" PRIu32
                       " layers, expected 1 to the number of tensors, %" PRIu64,
                       d.n_layers, g->n_tensors);
    if (d.n_nextn >= d.n_layers)
        return xm_fail(err, XM_INVALID,
                       "key '%s.nextn_predict_layers': expected fewer than all %" PRIu32
                       " layers, found %" PRIu32,
                       d.arch->name, d.n_layers, d.n_nextn);
    d.n_layers -= d.n_nextn;
    if (d.n_nextn)
        xm_log(XM_LOG_INFO,
               "the last %" PRIu32
               " layer%s, for predicting further tokens, will not be read",
               d.n_nextn, xm_plural(d.n_nextn));
    d.layer = xm_arena_alloc(arena, d.n_layers * sizeof(*d.layer));
    if (!d.layer)
        return xm_no_memory(err, "a model's layers");
    if (d.weights_scale == 0.0f)
        d.weights_scale = 1.0f;
    XM_TRY(read_attention(g, &d, err));
    XM_TRY(read_experts(g, &d, err));
    XM_TRY(xm_metadata_read_tensors(g, &d, err));
    XM_TRY(complete_gate(g, &d, err));
    XM_TRY(xm_decoder_check(&d, err));
    *out = d;
    return XM_OK;
}
