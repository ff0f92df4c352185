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

/* A result of a node. */
struct xm_exec_port {
    enum xm_element element; /* the type on the device          */
    uint32_t rank;
    int64_t dim[XM_MAX_RANK]; /* -1: changes from run to run    */
};

/* An operand of a node: a result of an earlier node. */
struct xm_exec_edge {
    uint32_t node, result;
};

/* A step, or an input or result. Texts lie in the graph's arena, or are static. */
struct xm_exec_node {
    const char *name; /* of the model's layer; of one of them if several were fused */
    const char *type; /* xm_layer_type; "Input", "Output" */
    /* names separated by spaces; "" for inputs and results */
    const char *kernels;
    const char *precision; /* the type that it computes in: "f16" */
    /* names of the file's layers that were fused into it, separated by commas */
    const char *layers;
    const struct xm_exec_edge *in; /* constants and weights are not among them */
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

/* The layer type of an operation in counters and execution graphs: OpenVINO's name in files
 * ("MatMul"), or that of OpenVINO's own passes ("FullyConnected"). `op` is its name in graph text;
 * `n` is the node, whose attributes may decide the type, or NULL. Static. */
const char *xm_layer_type(const char *op, const struct xm_node *n);

/* Adds the names of the file's layers that `n` came from to a list apart by commas: its own, of
 * what it has replaced, and of what its constants were folded from. */
void xm_layer_origins(const struct xm_node *n, struct xm_strbuf *list);

/* Of a graph that is evaluated node by node: everything but constants is a step. *out is for
 * xm_exec_graph_free, also on failure. */
enum xm_status xm_exec_graph_from(const struct xm_graph *g, const char *kernel,
                                  struct xm_exec_graph *out, struct xm_error *err);

/* The port of a type in a graph that shows it as stored. */
struct xm_exec_port xm_exec_port_of(enum xm_element element, const struct xm_shape *s);

#ifdef __cplusplus
}
#endif
#endif
