/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders by name, for synthetic models: a small one for each architecture, and published models
 * with their real sizes.
 */
#ifndef XM_PLUGIN_MODELS_PRESETS_H
#define XM_PLUGIN_MODELS_PRESETS_H

#include "plugin/models/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sizes of a decoder; 0: the decoder does not have the part. */
struct xm_preset {
    const char *name, *arch;
    uint32_t layers, hidden, vocabulary, context;
    uint32_t heads, kv_heads, head_dim;
    /* KV heads and head size of layers without a sliding window; 0: as in the other layers. */
    uint32_t kv_heads_full, head_dim_full;
    uint32_t window, period; /* every period-th layer has no sliding window */
    /* Width of the dense feed-forward, and its width in layers that share another layer's keys (0:
     * the same). */
    uint32_t ffn, ffn_of_sharing;
    uint32_t experts, top_k, expert_ffn, shared_ffn;
    /* Number of layers at the beginning without experts, in a model with experts. */
    uint32_t dense_layers;
    uint32_t groups, groups_used;
    uint32_t sharing; /* number of layers at the end that share another layer's keys */
    uint32_t ple;
    float rope_base, rope_base_sliding;
    float weights_scale, logit_cap;
    float yarn_factor;
    uint32_t yarn_context;
    /* The architecture's optional tensors that all layers have, a bit each. */
    uint64_t extra;
    bool is_tied, keys_are_values;
};

/* Returns the preset with this name; NULL: there is none. */
const struct xm_preset *xm_preset_find(const char *name);
/* Returns preset number i; NULL: i is too large. */
const struct xm_preset *xm_preset_at(size_t i);

/* Makes the decoder with these sizes and all tensors that it needs; its layers are allocated in
 * `arena`. */
enum xm_status xm_preset_decoder(const struct xm_preset *p, struct xm_arena *arena,
                                 struct xm_decoder *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
