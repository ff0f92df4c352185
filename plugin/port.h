/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports: the inputs and results of a model, and the host's tensors for them.
 */
#ifndef XM_PLUGIN_PORT_H
#define XM_PLUGIN_PORT_H

#include "transformations/graph/bounds.h"
#include "transformations/graph/type.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_arena;
struct xm_graph;
struct xm_node;
struct xm_value;

/* A tensor in host memory: its type, shape and bytes. It does not own the bytes unless a comment
 * says so. */
struct xm_host_tensor {
    enum xm_element element;
    uint32_t rank;
    int64_t dim[XM_MAX_RANK];
    void *data;
    uint64_t bytes;
};

struct xm_port {
    const char *name; /* the first name of the tensor, or the node's friendly name */
    const char *const *names;
    uint32_t n_names;
    struct xm_type type; /* the type in the file, with symbolic dimensions */
    struct xm_bound bound[XM_MAX_RANK]; /* bounds of each dimension */
    uint64_t rows; /* rows of the table that an input's integers index; 0: none */
    /* name of the parameter, or of the node that computes the result; NULL: as `name` */
    const char *node;
};

struct xm_ports {
    struct xm_port *inputs, *outputs; /* in the graph's order */
    uint32_t n_inputs, n_outputs;
};

/* Returns the name of a parameter's or result's port: v's first tensor name, or n's friendly
 * name. */
const char *xm_port_name(const struct xm_node *n, const struct xm_value *v);
/* Makes the ports of a graph's parameters and results. They do not refer to the graph: names and
 * lists are copied into `arena`, dimensions into `dims`, which may be the graph's own. */
enum xm_status xm_ports_from_graph(const struct xm_graph *g, struct xm_arena *arena,
                                   struct xm_dim_pool *dims, struct xm_ports *out,
                                   struct xm_error *err);
/* Updates types and bounds after xm_graph_reshape; names and order do not change. */
enum xm_status xm_ports_retype(const struct xm_graph *g, struct xm_dim_pool *dims,
                               struct xm_ports *ports, struct xm_error *err);
/* Whether every dimension is constant. */
bool xm_port_is_static(const struct xm_port *port);
/* Returns the index of the port with this name; UINT32_MAX: no port has it. */
uint32_t xm_port_find(const struct xm_port *ports, uint32_t n, const char *name);

#ifdef __cplusplus
}
#endif
#endif
