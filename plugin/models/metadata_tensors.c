/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads which of a decoder's tensors a file has. The file must have all that the decoder needs, and
 * no unknown ones.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/models/metadata.h"
#include "runtime/util/memory.h"

static bool
is_in_file(const struct xm_gguf *g, enum xm_decoder_tensor t, uint32_t layer)
{
    char name[64];
    xm_decoder_tensor_name(t, layer, name);
    return xm_gguf_find_tensor(g, name) != NULL;
}

/* Returns whether the file has the tensor. Gate and up of the experts may be in one tensor. */
static bool
is_there(const struct xm_gguf *g, enum xm_decoder_tensor t, uint32_t layer)
{
    return is_in_file(g, t, layer) ||
           ((t == XM_TENSOR_GATE_EXPS || t == XM_TENSOR_UP_EXPS) &&
            is_in_file(g, XM_TENSOR_GATE_UP_EXPS, layer));
}

static enum xm_status
find_tensors(const struct xm_gguf *g, const struct xm_decoder *d, uint32_t layer,
             uint64_t *set, struct xm_error *err)
{
    const uint64_t needs = xm_decoder_needs(d, layer),
                   may = xm_decoder_may_have(d, layer);
    *set = 0;
    for (int t = 0; t < XM_TENSORS; t++) {
        const uint64_t bit = UINT64_C(1) << t;
        if (!((needs | may) & bit))
            continue;
        if (is_there(g, (enum xm_decoder_tensor)t, layer)) {
            *set |= bit;
        } else if (needs & bit) {
            char name[64];
            xm_decoder_tensor_name((enum xm_decoder_tensor)t, layer, name);
            return xm_fail(err, XM_INVALID,
                           "there is no tensor '%s', which %s models need", name,
                           d->arch->name);
        }
    }
    return XM_OK;
}

/* Returns the layer number behind "blk." in a tensor's name; 0: there is none, or it is too
 * large. */
static uint32_t
layer_of(struct xm_slice name)
{
    uint64_t number = 0;
    for (size_t i = strlen("blk."); i < name.n && number <= UINT32_MAX; i++) {
        if (name.text[i] < '0' || name.text[i] > '9')
            return (uint32_t)number;
        number = 10 * number + (uint64_t)(name.text[i] - '0');
    }
    return 0;
}

/* Fails unless a layer with latent attention has its keys and values in one tensor or in one
 * each. */
static enum xm_status
check_latent(const struct xm_decoder *d, uint32_t layer, struct xm_error *err)
{
    char name[64];
    if (!(d->traits & XM_TRAIT_LATENT) || xm_decoder_has(d, XM_TENSOR_ATTN_KV_B, layer) ||
        (xm_decoder_has(d, XM_TENSOR_ATTN_K_B, layer) &&
         xm_decoder_has(d, XM_TENSOR_ATTN_V_B, layer)))
        return XM_OK;
    xm_decoder_tensor_name(XM_TENSOR_ATTN_KV_B, layer, name);
    return xm_fail(err, XM_INVALID,
                   "there is neither tensor '%s' nor attn_k_b.weight and "
                   "attn_v_b.weight, which %s models need",
                   name, d->arch->name);
}

/* Finds the row of tensors.def and the layer of a tensor name. False: no tensor is named so. */
static bool
parse_name(struct xm_slice name, enum xm_decoder_tensor *out, uint32_t *layer)
{
    char spelled[64];
    *layer = layer_of(name);
    for (int t = 0; t < XM_TENSORS; t++) {
        *out = (enum xm_decoder_tensor)t;
        xm_decoder_tensor_name(*out, *layer, spelled);
        if (strlen(spelled) == name.n && memcmp(spelled, name.text, name.n) == 0)
            return true;
    }
    return false;
}

/* Returns whether a tensor is for keys or values of a layer that reads another layer's: some files
 * have such tensors, but nothing uses them. */
static bool
is_unread(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer)
{
    return layer < d->n_layers && d->layer[layer].kv_layer != layer &&
           (t == XM_TENSOR_ATTN_K || t == XM_TENSOR_ATTN_V || t == XM_TENSOR_ATTN_K_NORM);
}

/* Returns whether a tensor belongs to a layer that predicts further tokens. */
static bool
is_of_nextn(const struct xm_decoder *d, struct xm_slice name)
{
    const uint32_t layer = layer_of(name);
    return xm_slice_starts_with(name, xm_slice_of("blk.", 4)) && layer >= d->n_layers &&
           layer - d->n_layers < d->n_nextn;
}

/* Writes the name of the matrix to which "<matrix>.scale" or "<matrix>.input_scale" belongs. False:
 * it is not such a name. (input_scale is for quantised activations, which are not supported for
 * these files: it is ignored.) */
static bool
matrix_of(struct xm_slice name, char *matrix, size_t n)
{
    static const char *const suffixes[] = {".scale", ".input_scale"};
    for (size_t i = 0; i < XM_ARRAY_LEN(suffixes); i++) {
        const size_t length = strlen(suffixes[i]);
        if (name.n > length && name.n < n &&
            memcmp(name.text + name.n - length, suffixes[i], length) == 0) {
            snprintf(matrix, n, "%.*s.weight", (int)(name.n - length), name.text);
            return true;
        }
    }
    return false;
}

/* Returns whether the tensor is the scale or input_scale of a matrix that the file has. */
static bool
is_factor(const struct xm_gguf *g, const struct xm_decoder *d, struct xm_slice name)
{
    char matrix[64];
    uint32_t layer;
    enum xm_decoder_tensor t;
    if (!matrix_of(name, matrix, sizeof(matrix)) ||
        !parse_name((struct xm_slice){matrix, strlen(matrix)}, &t, &layer) ||
        !is_in_file(g, t, layer) || xm_tensor_infos[t].kind != XM_TENSOR_MATRIX)
        return false;
    if (is_unread(d, t, layer))
        return true;
    if (t == XM_TENSOR_GATE_UP_EXPS)
        t = XM_TENSOR_GATE_EXPS;
    return (!xm_tensor_infos[t].is_of_layer || layer < d->n_layers) &&
           xm_decoder_has(d, t, layer);
}

const struct xm_gguf_tensor *
xm_metadata_find_factor(const struct xm_gguf *g, const struct xm_decoder *d,
                        enum xm_decoder_tensor t, uint32_t layer)
{
    char name[64];
    uint32_t of_layer;
    enum xm_decoder_tensor own;
    if (xm_tensor_infos[t].kind != XM_TENSOR_MATRIX)
        return NULL;
    xm_decoder_tensor_name(t, layer, name);
    snprintf(strrchr(name, '.'), strlen(".weight") + 1, ".scale");
    const struct xm_slice slice = {name, strlen(name)};
    if (parse_name(slice, &own, &of_layer) && xm_decoder_has(d, own, of_layer))
        return NULL;
    return xm_gguf_find_tensor(g, name);
}

/* Fails if the file has an unknown tensor, because a part of the model would silently be
 * missing. */
static enum xm_status
check_known(const struct xm_gguf *g, const struct xm_decoder *d, struct xm_error *err)
{
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct xm_slice name = g->tensors[i]->name;
        uint32_t layer;
        enum xm_decoder_tensor t;
        bool is_known = parse_name(name, &t, &layer);
        if ((is_known && is_unread(d, t, layer)) || is_of_nextn(d, name))
            continue;
        if (is_known && t == XM_TENSOR_GATE_UP_EXPS) {
            /* used instead of gate and up: with them in the file it would be ignored */
            is_known = !is_in_file(g, XM_TENSOR_GATE_EXPS, layer) &&
                       !is_in_file(g, XM_TENSOR_UP_EXPS, layer);
            t = XM_TENSOR_GATE_EXPS;
        }
        is_known = is_known && layer < d->n_layers && xm_decoder_has(d, t, layer);
        if (!is_known && !is_factor(g, d, name))
            return xm_fail(err, XM_UNSUPPORTED,
                           "tensor '%.*s' is not a known tensor of %s models",
                           (int)name.n, name.text, d->arch->name);
    }
    return XM_OK;
}

enum xm_status
xm_metadata_read_tensors(const struct xm_gguf *g, struct xm_decoder *d,
                         struct xm_error *err)
{
    const struct xm_gguf_tensor *table = xm_gguf_find_tensor(g, "token_embd.weight");
    if (table && !d->vocabulary && table->ne[1] <= UINT32_MAX)
        d->vocabulary = (uint32_t)table->ne[1];
    for (uint32_t i = 0; i < d->n_layers; i++) {
        struct xm_decoder_layer *l = &d->layer[i];
        l->keys_are_values = (d->traits & XM_TRAIT_KEYS_ARE_VALUES) && l->kv_layer == i &&
                             l->kind == XM_ATTENTION_FULL &&
                             !is_in_file(g, XM_TENSOR_ATTN_V, i);
        XM_TRY(find_tensors(g, d, i, &l->tensors, err));
        XM_TRY(check_latent(d, i, err));
    }
    XM_TRY(find_tensors(g, d, d->n_layers, &d->tensors, err));
    return check_known(g, d, err);
}
