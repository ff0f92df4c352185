/* SPDX-License-Identifier: Apache-2.0
 *
 * The execution graph of a compiled model, for display: inputs, steps in order, results.
 */
#ifndef XM_PLUGIN_EXEC_GRAPH_H
#define XM_PLUGIN_EXEC_GRAPH_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An output of a node. */
struct xm_exec_port {
    enum xm_element element; /* the type on the device          */
    uint32_t rank;
    int64_t dim[XM_MAX_RANK]; /* -1: the size varies between runs */
};

/* An operand of a node: an output of an earlier node. */
struct xm_exec_edge {
    uint32_t node, result;
};

/* A step, an input or a result. Its texts are in the graph's arena, or static. */
struct xm_exec_node {
    /* the name of the model's layer, or of one of the layers that were fused */
    const char *name;
    const char *type; /* a type that xm_layer_type returns; "Input", "Output" */
    /* names of its kernels, separated by spaces; "" for inputs and results */
    const char *kernels;
    const char *precision; /* the type that the step computes in: "f16" */
    /* names of the file's layers that were fused into the step, separated by commas */
    const char *layers;
    const struct xm_exec_edge *in; /* operands, without constants and weights */
    const struct xm_exec_port *out;
    uint32_t n_in, n_out;
    bool on_host;
    uint64_t mean_ns; /* mean time of a run so far; 0: not measured (PERF_COUNT) */
};

struct xm_exec_graph {
    struct xm_arena arena; /* holds all nodes and texts */
    struct xm_exec_node *nodes;
    uint32_t n, n_steps; /* number of nodes; number of those that are steps */
};
void xm_exec_graph_free(struct xm_exec_graph *g);

/* Returns the layer type of an operation for counters and execution graphs: OpenVINO's name in
 * files ("MatMul"), or the name that OpenVINO's own passes use ("FullyConnected"). `op` is the
 * operation's name in graph text; `n` is the node, whose attributes may decide the type, or NULL.
 * The result is static. */
const char *xm_layer_type(const char *op, const struct xm_node *n);

/* Adds the names of the file's layers that `n` came from to a list separated by commas: its own
 * name, the names of the layers that it replaced, and of those that its constants were folded
 * from. */
void xm_layer_origins(const struct xm_node *n, struct xm_strbuf *list);

/* Makes the execution graph of a graph that is evaluated node by node: each node but constants is a
 * step, and `kernel` is its kernel. The caller frees *out with xm_exec_graph_free, also on
 * failure. */
enum xm_status xm_exec_graph_from(const struct xm_graph *g, const char *kernel,
                                  struct xm_exec_graph *out, struct xm_error *err);

/* Returns a port with this element type and shape; symbolic dimensions become -1. */
struct xm_exec_port xm_exec_port_of(enum xm_element element, const struct xm_shape *s);

#ifdef __cplusplus
}
#endif
#endif
