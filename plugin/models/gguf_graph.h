/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the graph of a GGUF model.
 */
#ifndef XM_PLUGIN_MODELS_GGUF_GRAPH_H
#define XM_PLUGIN_MODELS_GGUF_GRAPH_H

#include "plugin/readers/gguf.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Builds a graph without fused operations. Weights are views of the file; the graph holds
 * references to the mappings, so `g` may be closed afterwards. Error messages begin with `path`.
 * XM_UNSUPPORTED: the architecture, or a property of it, is not known here. *out is NULL on
 * failure. */
enum xm_status xm_gguf_graph(const struct xm_gguf *g, const char *path,
                             struct xm_graph **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
