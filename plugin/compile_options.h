/* SPDX-License-Identifier: Apache-2.0
 *
 * What whoever compiles a model wants of it, besides properties.
 */
#ifndef XM_PLUGIN_COMPILE_OPTIONS_H
#define XM_PLUGIN_COMPILE_OPTIONS_H

#include <stdbool.h>

struct xm_compile_options {
    bool keep_graph;  /* also where a device is only counted for */
    bool last_logits; /* only the last position's row of results that are per token */
    bool
        sampled_logits; /* the rows that the input sampled_tokens_indices says, instead */
};

#endif
