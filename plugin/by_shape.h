/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that cannot be planned before the shapes of their inputs are known ([?] + [?], where the
 * result has the longer of two lengths): a program for each set of shapes that comes, those used
 * last kept. To callers it is one compiled model with dynamic ports.
 */
#ifndef XM_PLUGIN_BY_SHAPE_H
#define XM_PLUGIN_BY_SHAPE_H

#include "plugin/plugin.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles a graph whose inputs have numbers; takes it over, also on failure. */
struct xm_shape_compiler {
    enum xm_status (*compile)(void *ctx, struct xm_graph *g, struct xm_compiled **out,
                              struct xm_error *err);
    void (*destroy)(void *ctx);
    void *ctx;
};

/* Whether it could help: the graph has inputs without numbers, and no states. */
bool xm_by_shape_is_for(const struct xm_graph *g);
/* A graph that stays as it is, counted as a mapping: its copies refer to it. */
struct xm_kept_graph {
    struct xm_mapping base;
    struct xm_graph *graph;
};
/* Takes *g over, also on failure; *g becomes a copy to compile. */
enum xm_status xm_graph_keep(struct xm_graph **g, struct xm_kept_graph **out,
                             struct xm_error *err);
/* A first program is compiled for small shapes, so that what no shape can mend fails here.
 * Takes a reference to the graph, and the compiler over, also on failure. */
enum xm_status xm_by_shape_create(struct xm_kept_graph *kept,
                                  struct xm_shape_compiler compiler,
                                  struct xm_compiled **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
