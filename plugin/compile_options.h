/* SPDX-License-Identifier: Apache-2.0
 *
 * What whoever compiles a model wants of it, besides properties.
 */
#ifndef XM_PLUGIN_COMPILE_OPTIONS_H
#define XM_PLUGIN_COMPILE_OPTIONS_H

#include <stdbool.h>

/* Drivers that compile at launches (XM_CAP_DRIVER_FILES) make code for text generation when it
 * runs: a prompt of so many tokens and a token behind it bring nearly all of it about. */
enum { XM_WARM_UP_TOKENS = 32 };

struct xm_compile_options {
    /* A model of the C API, or of a pipeline: it may be kept where CACHE_DIR says, and one without
     * states compiled for each shape. */
    bool for_api;
    bool keep_graph; /* also where a device is only counted for */
    /* Of results that are per token only the rows that the input sampled_tokens_indices says, as
     * batches of sequences set it; of a device without sequences only the last position's. */
    bool sampled_logits;
};

#endif
