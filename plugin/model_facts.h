/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of a model from its graph: parameters, layers, experts, heads, formats of weights.
 *
 * Read from the form that the passes make of it, where experts, attention and stored weights are
 * one operation each however the file spells them. No device takes part, and no weight is read.
 * What is of several kinds (layers with a sliding window and without) has a row for each.
 */
#ifndef XM_PLUGIN_MODEL_FACTS_H
#define XM_PLUGIN_MODEL_FACTS_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_FACTS_KINDS = 8, XM_FACTS_FORMATS = 16 };

/* Experts of `layers` layers. */
struct xm_expert_facts {
    uint64_t layers;
    uint64_t experts, top_k, width; /* E, K, I                                     */
    uint64_t shared_width;          /* of experts that every token has; 0: none    */
};

/* Attention of `layers` layers. */
struct xm_attention_facts {
    uint64_t layers;
    uint64_t heads, kv_heads, head_size, value_head_size;
    uint64_t window;     /* positions that are seen; 0: all                        */
    bool shares_a_cache; /* keys and values are another layer's                    */
};

/* Weights of one format. */
struct xm_format_facts {
    const char *text; /* an element type, or a format of blocks */
    /* inputs that share a scale; 0: no scales; UINT64_MAX: all of a row */
    uint64_t group;
    bool has_zero_points;
    uint64_t parameters, bytes; /* scales and zero points included in bytes        */
};

/* 0: the graph does not tell. What has no room in a list is left out of it, not of the sums. */
struct xm_model_facts {
    uint64_t parameters;        /* a head that is the embedding table counts once  */
    uint64_t active_parameters; /* that one token meets                            */
    uint64_t bytes;             /* of all parameters as they are stored            */
    uint64_t hidden, vocabulary;
    uint64_t layers;        /* with attention                                      */
    uint64_t expert_layers; /* with experts                                        */
    struct xm_expert_facts experts[XM_FACTS_KINDS];
    struct xm_attention_facts attention[XM_FACTS_KINDS];
    struct xm_format_facts formats[XM_FACTS_FORMATS]; /* the largest first         */
    uint32_t n_experts, n_attention, n_formats;
    const char *family; /* as xm_model_family says; NULL: the graph does not tell */
};

/* Of a graph as read, which stays as it is. */
enum xm_status xm_model_facts(const struct xm_graph *g, struct xm_model_facts *out,
                              struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
