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

/* Host bytes with type and concrete shape. Borrowed unless said otherwise. */
struct xm_host_tensor {
    enum xm_element element;
    uint32_t rank;
    int64_t dim[XM_MAX_RANK];
    void *data;
    uint64_t bytes;
};

struct xm_port {
    const char *name; /* first tensor name, or the friendly name              */
    const char *const *names;
    uint32_t n_names;
    struct xm_type type;                /* as in the file, symbolic */
    struct xm_bound bound[XM_MAX_RANK]; /* of its dimensions */
    uint64_t rows;    /* of the table whose rows an input's integers choose; 0: none */
    const char *node; /* of the parameter, or of what makes the result; NULL: as `name` */
};

struct xm_ports {
    struct xm_port *inputs, *outputs; /* in the order of the graph */
    uint32_t n_inputs, n_outputs;
};

/* How the port of a parameter or result is called: v's first tensor name, or its own. */
const char *xm_port_name(const struct xm_node *n, const struct xm_value *v);
/* Of a graph's parameters and results. Nothing refers to the graph: names are copied into `arena`,
 * where the lists are, and dimensions into `dims`; the graph's own will do. */
enum xm_status xm_ports_from_graph(const struct xm_graph *g, struct xm_arena *arena,
                                   struct xm_dim_pool *dims, struct xm_ports *out,
                                   struct xm_error *err);
/* After xm_graph_reshape: types and bounds anew, names and order stay. */
enum xm_status xm_ports_retype(const struct xm_graph *g, struct xm_dim_pool *dims,
                               struct xm_ports *ports, struct xm_error *err);
/* Whether each dimension has one number. */
bool xm_port_is_static(const struct xm_port *port);
/* Index of a port by any of its names; UINT32_MAX: none. */
uint32_t xm_port_find(const struct xm_port *ports, uint32_t n, const char *name);

#ifdef __cplusplus
}
#endif
#endif
