/* SPDX-License-Identifier: Apache-2.0
 *
 * Options for compiling a model that are not properties.
 */
#ifndef XM_PLUGIN_COMPILE_OPTIONS_H
#define XM_PLUGIN_COMPILE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"

struct xm_graph;
struct xm_rank_group;

/* The number of prompt tokens of the warm-up run. Some drivers (XM_CAP_DRIVER_FILES) compile
 * kernels when they are first launched: a prompt of this length and one more token launch nearly
 * all kernels of text generation. */
enum { XM_WARM_UP_TOKENS = 32 };

struct xm_compile_options {
    /* The model comes from the C API or a pipeline: it may be stored in CACHE_DIR, and a model
     * without states may be compiled for each shape. */
    bool for_api;
    /* for xm_infer_ops.check; also on an engine that only counts memory */
    bool keep_graph;
    /* With keep_graph, for a mesh: the check compares the results of all steps, not only the values
     * that ranks exchange. */
    bool shows_inner;
    /* Compute results per token only for the rows listed in the input sampled_tokens_indices, which
     * batches of sequences set; on a device without sequences only for the last position. */
    bool sampled_logits;
    /* Replaces the graph that the passes have rewritten, for example by one rank's part: *g on
     * return is compiled. `replace` owns the old *g, also on failure. NULL: the graph is compiled
     * as it is. */
    enum xm_status (*replace)(void *ctx, struct xm_graph **g, struct xm_error *err);
    void *replace_ctx;
    /* For a mesh in one process: creates the group that connects its n ranks. NULL:
     * xm_shared_group_create. */
    struct xm_rank_group *(*connect)(uint32_t n);
};

#endif
