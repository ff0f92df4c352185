/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of compiling a model besides properties.
 */
#ifndef XM_PLUGIN_COMPILE_OPTIONS_H
#define XM_PLUGIN_COMPILE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"

struct xm_graph;
struct xm_rank_group;

/* Drivers that compile at launches (XM_CAP_DRIVER_FILES) make code for text generation when it
 * runs: a prompt of so many tokens and a token behind it bring nearly all of it about. */
enum { XM_WARM_UP_TOKENS = 32 };

struct xm_compile_options {
    /* A model of the C API, or of a pipeline: it may be kept where CACHE_DIR says, and one without
     * states compiled for each shape. */
    bool for_api;
    bool keep_graph; /* for xm_infer_ops.check; also on a counting engine */
    bool
        shows_inner; /* with keep_graph, of a mesh: not what ranks exchange alone is checked */
    /* Compute results per token only for the rows listed in the input sampled_tokens_indices, which
     * batches of sequences set; on a device without sequences only for the last position. */
    bool sampled_logits;
    /* Called with the rewritten graph; what *g is afterwards is compiled. It takes *g over, also on
     * failure. NULL: the graph stays as it is. */
    enum xm_status (*replace)(void *ctx, struct xm_graph **g, struct xm_error *err);
    void *replace_ctx;
    /* Of a mesh in one process: who connects its n ranks. NULL: xm_shared_group_create. */
    struct xm_rank_group *(*connect)(uint32_t n);
};

#endif
