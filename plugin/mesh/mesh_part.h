/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a graph that a rank compiles, as a hook of xm_compile_options: for meshes that run,
 * and for plans of meshes.
 */
#ifndef XM_PLUGIN_MESH_MESH_PART_H
#define XM_PLUGIN_MESH_MESH_PART_H

#include "plugin/forecast.h"
#include "plugin/mesh/mesh_names.h"
#include "transformations/split/split.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the ranks' compiles have in common. */
struct xm_mesh_parts {
    const struct xm_mesh_devices *devices;
    struct xm_split_wish wish;
    struct xm_collective *end; /* of the rank that compiles now */
    uint64_t fingerprint;      /* of the whole model's weights: sizes and first bytes */
    /* Of the first part: xm_split_print's lines, which the others' have to equal, and those of
     * xm_split_print_kinds. The caller frees both. */
    char *exchanges, *exchange_kinds;
    uint64_t weight_bytes[XM_MOST_RANKS]; /* of all ranks, as the last split has it */
    const char *weight_format; /* that most bytes of the whole model's have; static */
    uint32_t n_exchanges;
    /* Of a token, as it is sent. */
    uint64_t exchanged_bytes;
    /* Of all tokens alike, and what only tokens whose logits are wanted have besides. */
    struct xm_exchange_work exchanged, exchanged_chosen;
};

/* Whether summands are sent as f16, by the value of XM_MESSAGE_PRECISION (NULL: not given). */
bool xm_mesh_halves_sums(const char *precision);
/* How a model is split by the value of MODEL_DISTRIBUTION_POLICY (NULL or "": not given). With
 * OpenVINO's TENSOR_PARALLEL all is split that is worth a message at some size, EXPERT_PARALLEL is
 * the same with experts cut between them, PIPELINE_PARALLEL gives each rank layers; without it,
 * what saves more than its messages cost. XM_INVALID: another value. */
enum xm_status xm_mesh_wish(const struct xm_mesh_devices *d, const char *policy,
                            struct xm_split_wish *out, struct xm_error *err);

/* Values of xm_compile_options.replace; `parts` is a struct xm_mesh_parts.
 *
 * The whole graph with each exchanged value as a result (xm_split_whole). */
enum xm_status xm_mesh_take_whole(void *parts, struct xm_graph **g, struct xm_error *err);
/* The part of rank parts->end. XM_UNSUPPORTED: the ranks would exchange different values. */
enum xm_status xm_mesh_take_part(void *parts, struct xm_graph **g, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
