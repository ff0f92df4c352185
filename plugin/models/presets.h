/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders by name: small ones of each architecture, and models with the sizes they have.
 */
#ifndef XM_PLUGIN_MODELS_PRESETS_H
#define XM_PLUGIN_MODELS_PRESETS_H

#include "plugin/models/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes from which a decoder follows; 0 where there is nothing of the kind. */
struct xm_preset {
    const char *name, *arch;
    uint32_t layers, hidden, vocabulary, context;
    uint32_t heads, kv_heads, head_dim;
    /* of layers without window, 0: as the others */
    uint32_t kv_heads_full, head_dim_full;
    uint32_t window, period;      /* every period-th layer has none             */
    uint32_t ffn, ffn_of_sharing; /* of layers that read another's keys         */
    uint32_t experts, top_k, expert_ffn, shared_ffn;
    uint32_t dense_layers; /* the first ones, of a model with experts */
    uint32_t groups, groups_used;
    uint32_t sharing; /* layers at the end that read another's keys */
    uint32_t ple;
    float rope_base, rope_base_sliding;
    float weights_scale, logit_cap;
    float yarn_factor;
    uint32_t yarn_context;
    uint64_t extra; /* tensors that layers of the architecture may have, and these do */
    bool is_tied, keys_are_values;
};

/* NULL: not known. */
const struct xm_preset *xm_preset_find(const char *name);
/* Row i, NULL behind the last. */
const struct xm_preset *xm_preset_at(size_t i);

/* The decoder of these sizes, with the tensors it needs; its layers are in `arena`. */
enum xm_status xm_preset_decoder(const struct xm_preset *p, struct xm_arena *arena,
                                 struct xm_decoder *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
