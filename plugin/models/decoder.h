/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of language models as data, and the graph built from one.
 *
 *     GGUF metadata ──► struct xm_decoder ◄── options of synthetic models
 *                            │
 *     weights (of a file, ───┼──► xm_decoder_build ──► a plain graph, which the passes rewrite
 *     or random)             │
 *                            └──► xm_decoder_dims: which tensors there are, and of which sizes
 *
 * An architecture is a row of architectures.def, its tensors are rows of tensors.def. The graph has
 * the form that exporters write, without fused operations, so that graphs from GGUF files and from
 * OpenVINO IR go through the same passes.
 */
#ifndef XM_PLUGIN_MODELS_DECODER_H
#define XM_PLUGIN_MODELS_DECODER_H

#include "transformations/graph/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_decoder_tensor {
#define TENSOR(id, scope, name, kind, rank, n0, n1, n2) XM_TENSOR_##id,
#include "plugin/models/tensors.def"
    XM_TENSORS
};

enum xm_tensor_kind { XM_TENSOR_VECTOR, XM_TENSOR_MATRIX, XM_TENSOR_TABLE };

struct xm_tensor_info {
    const char *name; /* name without the layer's prefix */
    bool is_of_layer;
    enum xm_tensor_kind kind;
    uint32_t rank;
    int size[3]; /* indices in sizes.def, outermost first */
};
extern const struct xm_tensor_info xm_tensor_infos[XM_TENSORS];

/* Traits: properties of an architecture that do not follow from its keys and tensors. One bit for
 * each row of traits.def. */
enum xm_trait_number {
#define TRAIT(id) XM_TRAIT_NUMBER_##id,
#include "plugin/models/traits.def"
    XM_TRAITS
};
enum xm_trait {
#define TRAIT(id) XM_TRAIT_##id = 1 << XM_TRAIT_NUMBER_##id,
#include "plugin/models/traits.def"
};

/* How experts are scored and chosen; numbered as in GGUF, from 1. */
enum xm_decoder_gate {
    XM_GATE_SOFTMAX = 1, /* softmax of the logits of all experts */
    XM_GATE_SIGMOID,
    /* experts are chosen by logits; softmax of the chosen ones' logits */
    XM_GATE_SOFTMAX_OF_CHOSEN,
    XM_GATE_SQRT_SOFTPLUS,
    XM_GATES
};

struct xm_architecture {
    const char *name, *config;
    enum xm_decoder_gate gate;
    uint32_t traits;   /* set of enum xm_trait */
    uint64_t has, may; /* sets of a layer's tensors (architectures.def) */
};
/* Returns the architecture with this name of n bytes; NULL: unknown. */
const struct xm_architecture *xm_architecture_find(const char *name, size_t n);
/* Returns the names of all known architectures: "llama, qwen2, …"; static. */
const char *xm_architecture_names(void);

/* The positions that a layer's queries attend to: all up to their own (FULL), or the last `window`
 * of them (SLIDING). */
enum xm_attention_kind { XM_ATTENTION_FULL, XM_ATTENTION_SLIDING, XM_ATTENTION_KINDS };

enum xm_rope_scaling { XM_ROPE_UNSCALED, XM_ROPE_LINEAR, XM_ROPE_YARN };

/* Sizes that all layers with the same kind of attention share. */
struct xm_decoder_attention {
    /* columns of a head's queries and keys, and of its values */
    uint32_t head_dim, value_dim;
    uint32_t rope_dim; /* columns of head_dim that are rotated, the first; even */
    float rope_base;
    uint32_t window; /* positions that a query sees; 0: all */
};

struct xm_decoder_layer {
    enum xm_attention_kind kind;
    uint32_t heads, kv_heads;
    uint32_t ffn; /* width of the dense feed-forward; 0: none */
    bool has_experts;
    /* The layer whose keys and values this one reads: itself or an earlier one. */
    uint32_t kv_layer;
    bool keys_are_values;
    uint64_t tensors; /* its tensors, a bit for each enum xm_decoder_tensor */
};

struct xm_decoder {
    const struct xm_architecture *arch;
    uint32_t traits; /* the architecture's traits, as changed by keys of the file */
    uint32_t n_layers, hidden, vocabulary, context;
    /* Number of layers behind the first n_layers that predict further tokens; they are not used. */
    uint32_t n_nextn;
    float epsilon;
    float logit_cap; /* logits become cap * tanh(x / cap); 0: no cap */
    struct xm_decoder_attention attention[XM_ATTENTION_KINDS];
    /* sizes of the latents (MLA); q_rank 0: queries have none */
    uint32_t q_rank, kv_rank;
    struct {
        enum xm_rope_scaling kind;
        uint32_t original_context;
        float factor, beta_fast, beta_slow;
        /* multiplies cosines and sines in addition to YaRN's number; 0: none */
        float attention_factor;
        /* With latent attention: m in (m ln(factor) + 1)², which multiplies the scores. */
        float log_multiplier;
    } rope_scaling;
    /* experts: number, chosen per token, width; width of the shared expert */
    uint32_t experts, experts_used, expert_ffn, shared_ffn;
    enum xm_decoder_gate gate;
    float weights_scale;            /* multiplies the routed experts' weights */
    uint32_t groups, groups_used;   /* groups of experts, groups chosen; 0: no groups */
    uint32_t ple;                   /* size of per-layer embeddings; 0: none */
    uint64_t tensors;               /* the tensors outside of layers, a bit each */
    struct xm_decoder_layer *layer; /* [n_layers] */
};

/* Sets kv_layer of all layers: each of the last n_shared layers reads the keys and values of the
 * last layer before them with the same kind of attention, every other layer its own. */
enum xm_status xm_decoder_share_keys(struct xm_decoder *d, uint32_t n_shared,
                                     struct xm_error *err);

/* Returns the set of tensors that layer `layer` must have according to the description; layer ==
 * n_layers: the tensors outside of layers that the model must have. */
uint64_t xm_decoder_needs(const struct xm_decoder *d, uint32_t layer);
/* Returns the set of tensors that it may have in addition. */
uint64_t xm_decoder_may_have(const struct xm_decoder *d, uint32_t layer);

/* Sets dim[] to the tensor's sizes, outermost first; 1 from its rank on. */
void xm_decoder_dims(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer,
                     uint64_t dim[3]);
/* Writes the tensor's name in GGUF files, such as "blk.3.attn_q.weight". */
void xm_decoder_tensor_name(enum xm_decoder_tensor t, uint32_t layer, char name[64]);

/* Checks the sizes. XM_INVALID: no decoder can have them; the error message says which. */
enum xm_status xm_decoder_check(const struct xm_decoder *d, struct xm_error *err);

static inline bool
xm_decoder_has(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer)
{
    const uint64_t set =
        xm_tensor_infos[t].is_of_layer ? d->layer[layer].tensors : d->tensors;
    return set >> t & 1;
}

/* The source of the weights. */
struct xm_decoder_weights {
    void *ctx;
    /* Returns a tensor as an f32 value of its sizes: a weight, or nodes that compute it. NULL:
     * failure, with graph->err set, as builders do. It is called for each use of a tensor. */
    struct xm_value *(*get)(void *ctx, struct xm_builder *b, enum xm_decoder_tensor t,
                            uint32_t layer);
};

/* The form of the expert block: as current exporters write it, or as older ones did (R1). */
enum xm_experts_form { XM_EXPERTS_EXPORTER, XM_EXPERTS_R1 };

/* Adds inputs, layers and results to an empty graph: input_ids, attention_mask, position_ids,
 * beam_idx -> logits, and states for the keys and values of each layer that has its own. *d must
 * have been checked (xm_decoder_check) and have its sets of tensors. */
enum xm_status xm_decoder_build(const struct xm_decoder *d,
                                const struct xm_decoder_weights *weights,
                                enum xm_experts_form form, struct xm_graph *g,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
