/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders of language models as data, and the graph of one.
 *
 *     GGUF metadata ──► struct xm_decoder ◄── options of synthetic models
 *                            │
 *     weights (of a file, ───┼──► xm_decoder_build ──► a plain graph, which the passes rewrite
 *     or random)             │
 *                            └──► xm_decoder_dims: which tensors there are, and of which sizes
 *
 * An architecture is a row of architectures.def, its tensors rows of tensors.def. The graph is
 * spelled as exporters spell it, with no fused operation, so that what comes from GGUF files and
 * what comes from OpenVINO IR meet the same passes.
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
    const char *name; /* without the layer's prefix */
    bool is_of_layer;
    enum xm_tensor_kind kind;
    uint32_t rank;
    int size[3]; /* of sizes.def, outermost first */
};
extern const struct xm_tensor_info xm_tensor_infos[XM_TENSORS];

/* Traits, properties of an architecture that its keys and tensors do not show: a bit for each row
 * of traits.def. */
enum xm_trait_number {
#define TRAIT(id) XM_TRAIT_NUMBER_##id,
#include "plugin/models/traits.def"
    XM_TRAITS
};
enum xm_trait {
#define TRAIT(id) XM_TRAIT_##id = 1 << XM_TRAIT_NUMBER_##id,
#include "plugin/models/traits.def"
};

/* How experts are scored and chosen; in the order of GGUF's numbers, from 1. */
enum xm_decoder_gate {
    XM_GATE_SOFTMAX = 1, /* of the logits of all experts */
    XM_GATE_SIGMOID,
    XM_GATE_SOFTMAX_OF_CHOSEN, /* of the logits of the chosen experts, which are chosen by logits */
    XM_GATE_SQRT_SOFTPLUS,
    XM_GATES
};

struct xm_architecture {
    const char *name, *config;
    enum xm_decoder_gate gate;
    uint32_t traits;   /* enum xm_trait */
    uint64_t has, may; /* sets of tensors of a layer */
};
/* NULL: not known. */
const struct xm_architecture *xm_architecture_find(const char *name, size_t n);
/* "llama, qwen2, …": all that are known; static. */
const char *xm_architecture_names(void);

/* Layers see all positions before them, or those of a window, themselves among them. */
enum xm_attention_kind { XM_ATTENTION_FULL, XM_ATTENTION_SLIDING, XM_ATTENTION_KINDS };

enum xm_rope_scaling { XM_ROPE_UNSCALED, XM_ROPE_LINEAR, XM_ROPE_YARN };

/* What all layers of a kind share. */
struct xm_decoder_attention {
    uint32_t head_dim, value_dim; /* of a head */
    uint32_t rope_dim; /* of head_dim, those that are rotated: the first; even */
    float rope_base;
    uint32_t window; /* positions, 0: all */
};

struct xm_decoder_layer {
    enum xm_attention_kind kind;
    uint32_t heads, kv_heads;
    uint32_t ffn; /* width of the dense feed-forward, 0: none */
    bool has_experts;
    /* the layer whose keys and values it reads: itself or an earlier one */
    uint32_t kv_layer;
    bool keys_are_values;
    uint64_t tensors; /* the tensors that it has, one bit each: enum xm_decoder_tensor */
};

struct xm_decoder {
    const struct xm_architecture *arch;
    uint32_t traits; /* the architecture's, as changed by keys of the file */
    uint32_t n_layers, hidden, vocabulary, context;
    /* number of layers behind the n_layers that predict further tokens and are not read */
    uint32_t n_nextn;
    float epsilon;
    float logit_cap; /* cap * tanh(x / cap), 0: none */
    struct xm_decoder_attention attention[XM_ATTENTION_KINDS];
    uint32_t q_rank, kv_rank; /* sizes of latents; q_rank 0: queries have no latent */
    struct {
        enum xm_rope_scaling kind;
        uint32_t original_context;
        float factor, beta_fast, beta_slow;
        float attention_factor; /* further factor of the formula's scale; 0: none */
        /* m in the factor (m ln(factor) + 1)² of latent attention's scores */
        float log_multiplier;
    } rope_scaling;
    /* experts */
    uint32_t experts, experts_used, expert_ffn, shared_ffn;
    enum xm_decoder_gate gate;
    float weights_scale;          /* factor of the routed experts' weights      */
    uint32_t groups, groups_used; /* groups of experts, groups chosen; 0: none  */
    uint32_t ple;                 /* size of per-layer embeddings; 0: none      */
    uint64_t tensors; /* the model's tensors outside of layers, one bit each */
    struct xm_decoder_layer *layer; /* [n_layers] */
};

/* Sets kv_layer of all layers: each of the last n_shared layers reads the keys and values of the
 * last layer before them with the same kind of attention, every other layer its own. */
enum xm_status xm_decoder_share_keys(struct xm_decoder *d, uint32_t n_shared,
                                     struct xm_error *err);

/* The tensors that layer `layer` must have according to the description, or, for layer == n_layers,
 * those that the model must have outside of layers. One bit each. */
uint64_t xm_decoder_needs(const struct xm_decoder *d, uint32_t layer);
/* The tensors that it may have besides. */
uint64_t xm_decoder_may_have(const struct xm_decoder *d, uint32_t layer);

/* The tensor's sizes, outermost first; ones behind its rank. */
void xm_decoder_dims(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer,
                     uint64_t dim[3]);
/* "blk.3.attn_q.weight" */
void xm_decoder_tensor_name(enum xm_decoder_tensor t, uint32_t layer, char name[64]);

/* XM_INVALID: sizes that no decoder has; the sentence says which. */
enum xm_status xm_decoder_check(const struct xm_decoder *d, struct xm_error *err);

static inline bool
xm_decoder_has(const struct xm_decoder *d, enum xm_decoder_tensor t, uint32_t layer)
{
    const uint64_t set =
        xm_tensor_infos[t].is_of_layer ? d->layer[layer].tensors : d->tensors;
    return set >> t & 1;
}

/* Where weights come from. */
struct xm_decoder_weights {
    void *ctx;
    /* A tensor as f32 of its sizes: a weight, or what ends in one. NULL on failure, with
     * graph->err set, as builders do. It is asked for each time it is used. */
    struct xm_value *(*get)(void *ctx, struct xm_builder *b, enum xm_decoder_tensor t,
                            uint32_t layer);
};

/* How the expert block is spelled: as exporters do, or as older ones did (R1). */
enum xm_experts_form { XM_EXPERTS_EXPORTER, XM_EXPERTS_R1 };

/* Adds inputs, layers and results to an empty graph: input_ids, attention_mask, position_ids,
 * beam_idx -> logits, and a state for keys and values of each layer that has its own. The
 * decoder is checked and its sets of tensors are filled in. */
enum xm_status xm_decoder_build(const struct xm_decoder *d,
                                const struct xm_decoder_weights *weights,
                                enum xm_experts_form form, struct xm_graph *g,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
