/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about a model from its graph: parameters, layers, experts, heads, formats of weights.
 *
 * They are read from the graph after the passes, where experts, attention and stored weights are
 * one operation each, however the file expresses them. No device is needed, and no weight is read.
 * Layers of different kinds (with and without a sliding window) have one entry for each kind.
 */
#ifndef XM_PLUGIN_MODEL_FACTS_H
#define XM_PLUGIN_MODEL_FACTS_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_FACTS_KINDS = 8, XM_FACTS_FORMATS = 16 };

/* The experts of `layers` equal layers. */
struct xm_expert_facts {
    uint64_t layers;
    uint64_t experts, top_k, width; /* E, K, I                                     */
    uint64_t shared_width; /* intermediate size of the shared expert; 0: there is none */
};

/* The attention of `layers` equal layers. */
struct xm_attention_facts {
    uint64_t layers;
    uint64_t heads, kv_heads, head_size, value_head_size;
    uint64_t window;     /* positions that a token attends to; 0: all */
    bool shares_a_cache; /* keys and values are in another layer's cache */
};

/* Weights of one format. */
struct xm_format_facts {
    const char *text; /* an element type, or a format of blocks */
    /* number of inputs that share a scale; 0: no scales; UINT64_MAX: a whole row shares one */
    uint64_t group;
    bool has_zero_points;
    uint64_t parameters, bytes; /* scales and zero points included in bytes        */
};

/* Members that are 0: the graph does not say. The lists are bounded: a kind that finds no room is
 * missing in its list, but not in the sums. */
struct xm_model_facts {
    uint64_t parameters; /* an output head that is the embedding table counts once */
    uint64_t active_parameters; /* the parameters that one token is multiplied with */
    uint64_t bytes;             /* of all parameters as they are stored            */
    uint64_t hidden, vocabulary;
    uint64_t layers;        /* layers with attention */
    uint64_t expert_layers; /* layers with experts */
    struct xm_expert_facts experts[XM_FACTS_KINDS];
    struct xm_attention_facts attention[XM_FACTS_KINDS];
    /* sorted by bytes, the largest first */
    struct xm_format_facts formats[XM_FACTS_FORMATS];
    uint32_t n_experts, n_attention, n_formats;
    const char *family; /* the result of xm_model_family; NULL: the graph does not say */
};

/* Finds the facts of a graph as it was read; the graph is not changed. */
enum xm_status xm_model_facts(const struct xm_graph *g, struct xm_model_facts *out,
                              struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
