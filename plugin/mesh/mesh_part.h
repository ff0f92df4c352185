/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the graph that a rank's device compiles by the rank's part, as a hook of
 * xm_compile_options; used for meshes and for memory plans of meshes.
 */
#ifndef XM_PLUGIN_MESH_MESH_PART_H
#define XM_PLUGIN_MESH_MESH_PART_H

#include "plugin/forecast.h"
#include "plugin/mesh/mesh_names.h"
#include "transformations/split/split.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The data that the compiles of all ranks share. */
struct xm_mesh_parts {
    const struct xm_mesh_devices *devices; /* those of the ranks */
    struct xm_split_wish wish;
    /* of the rank that compiles now; NULL: a process of an MPI job with the share 0 */
    struct xm_collective *end;
    /* Of all processes of an MPI job; NULL: none of them has the share 0. is_idle[r]: process r has
     * the share 0 and gets the results from process `first`, that of rank 0. */
    struct xm_collective *job;
    bool is_idle[XM_MOST_RANKS];
    uint32_t first;
    uint64_t fingerprint; /* of the whole model's weights: sizes and first bytes */
    /* Text of xm_split_print for the first part, which the other parts' must equal, and text of
     * xm_split_print_kinds. The caller frees both. */
    char *exchanges, *exchange_kinds;
    uint64_t weight_bytes[XM_MOST_RANKS]; /* [rank] by the last split */
    const char *weight_format; /* format of most bytes of the whole model; static */
    uint32_t n_exchanges;
    uint64_t exchanged_bytes; /* for each token, as they are sent */
    /* The exchanges for each token, and those only for tokens whose logits are wanted. */
    struct xm_exchange_work exchanged, exchanged_chosen;
};

/* Returns whether XM_MESSAGE_PRECISION has a value, f16 or FP16, by which ranks send the summands
 * of sums as f16. precision NULL: the option is not set. */
bool xm_mesh_halves_sums(const char *precision);
/* Sets *out to how a model is split by the value of MODEL_DISTRIBUTION_POLICY:
 *   NULL, ""           splits layers whose split saves more time than its messages cost
 *   TENSOR_PARALLEL    splits all layers for which messages pay off at some size
 *   EXPERT_PARALLEL    the same, but each rank gets whole experts
 *   PIPELINE_PARALLEL  gives each rank whole layers
 * XM_INVALID: another value. */
enum xm_status xm_mesh_wish(const struct xm_mesh_devices *d, const char *policy,
                            struct xm_split_wish *out, struct xm_error *err);

/* Functions for xm_compile_options.replace; `parts` is a struct xm_mesh_parts.
 *
 * Replaces *g by the whole graph with each exchanged value as a result (xm_split_whole). */
enum xm_status xm_mesh_take_whole(void *parts, struct xm_graph **g, struct xm_error *err);
/* Replaces *g by the part of the rank that parts->end belongs to. XM_UNSUPPORTED: the ranks would
 * exchange different values. */
enum xm_status xm_mesh_take_part(void *parts, struct xm_graph **g, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
