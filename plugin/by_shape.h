/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled models for graphs that cannot be compiled before the shapes of their inputs are known
 * ([?] + [?], where the result has the longer of the two lengths). One program is compiled for each
 * set of input shapes; the most recently used programs are kept. To callers it is one compiled
 * model with dynamic ports.
 */
#ifndef XM_PLUGIN_BY_SHAPE_H
#define XM_PLUGIN_BY_SHAPE_H

#include "plugin/plugin.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles a graph whose inputs have constant shapes. It owns the graph from the call on, also on
 * failure. */
struct xm_shape_compiler {
    enum xm_status (*compile)(void *ctx, struct xm_graph *g, struct xm_compiled **out,
                              struct xm_error *err);
    void (*destroy)(void *ctx);
    void *ctx;
};

/* Whether compiling by shape can help: the graph has inputs with variable dimensions, and no
 * states. */
bool xm_by_shape_is_for(const struct xm_graph *g);
/* A graph that is never changed. Its copies refer to its bytes, and hold it by the mapping's
 * count. */
struct xm_kept_graph {
    struct xm_mapping base;
    struct xm_graph *graph;
};
/* Makes *g immutable, and sets *g to a copy that can be compiled. Owns the old *g, also on
 * failure. */
enum xm_status xm_graph_keep(struct xm_graph **g, struct xm_kept_graph **out,
                             struct xm_error *err);
/* Creates the compiled model. It compiles a first program for small shapes, so that models that
 * compile for no shape fail here. Adds a reference to `kept`; owns `compiler` from the call on,
 * also on failure. */
enum xm_status xm_by_shape_create(struct xm_kept_graph *kept,
                                  struct xm_shape_compiler compiler,
                                  struct xm_compiled **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
