/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph of a model in GGUF.
 */
#ifndef XM_PLUGIN_MODELS_GGUF_GRAPH_H
#define XM_PLUGIN_MODELS_GGUF_GRAPH_H

#include "plugin/readers/gguf.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plain graph; weights are views of the file, whose mappings the graph holds: `g` may be closed
 * afterwards. Sentences begin with `path`. XM_UNSUPPORTED: an architecture, or something of one,
 * that is not known here. *out is NULL on failure. */
enum xm_status xm_gguf_graph(const struct xm_gguf *g, const char *path,
                             struct xm_graph **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
