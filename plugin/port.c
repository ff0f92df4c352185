/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/port.h"

#include <string.h>

#include "transformations/graph/reshape.h"
#include "transformations/graph/table_rows.h"

const char *
xm_port_name(const struct xm_node *n, const struct xm_value *v)
{
    const char *name = n->attr.name.name;
    return v->n_names ? v->names[0] : name && name[0] ? name : n->name;
}

/* Returns the value whose names a result has: its own output if that has names, because a pass that
 * removed a no-op may have connected the result to a tensor with other names; else the operand. */
static const struct xm_value *
named_value(const struct xm_node *result)
{
    const struct xm_value *own = &result->out[0];
    return own->n_names ? own : xm_in(result, 0);
}

/* Returns the bounds of the input dimension that is equal to `d`. */
static struct xm_bound
bound_of(const struct xm_port *inputs, uint32_t n, struct xm_dim d)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < inputs[i].type.shape.rank; k++) {
            if (xm_dim_eq(inputs[i].type.shape.dim[k], d))
                return inputs[i].bound[k];
        }
    }
    return (struct xm_bound){0, -1};
}

/* Derives the bounds of a result's dimensions from those of the inputs. */
static void
result_bounds(struct xm_port *port, const struct xm_ports *ports,
              const struct xm_binding *fixed, uint32_t n_fixed)
{
    for (uint32_t i = 0; i < port->type.shape.rank; i++) {
        int64_t n;
        struct xm_error none = {0};
        const struct xm_dim d = port->type.shape.dim[i];
        const bool is_known = xm_dim_eval(d, fixed, n_fixed, &n, &none) == XM_OK;
        port->bound[i] = is_known ? (struct xm_bound){n, n}
                                  : bound_of(ports->inputs, ports->n_inputs, d);
    }
}

static void
retype(struct xm_port *port, const struct xm_value *v, struct xm_dim_pool *dims)
{
    port->type =
        (struct xm_type){.element = v->type.element, .shape.rank = v->type.shape.rank};
    for (uint32_t i = 0; i < v->type.shape.rank; i++)
        port->type.shape.dim[i] = xm_dim_import(dims, v->type.shape.dim[i]);
}

enum xm_status
xm_ports_retype(const struct xm_graph *g, struct xm_dim_pool *dims,
                struct xm_ports *ports, struct xm_error *err)
{
    enum { MOST = 64 };
    struct xm_binding fixed[MOST];
    const uint32_t n_fixed = xm_graph_fixed_symbols(g, fixed, MOST);
    uint32_t in = 0, out = 0;
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_PARAMETER) {
            retype(&ports->inputs[in], &n->out[0], dims);
            xm_parameter_bounds(n, ports->inputs[in++].bound);
        } else if (n->op == XM_OP_RESULT) {
            retype(&ports->outputs[out++], xm_in(n, 0), dims);
        }
    }
    for (uint32_t i = 0; i < out; i++)
        result_bounds(&ports->outputs[i], ports, fixed, n_fixed);
    return dims->failed ? xm_no_memory(err, "the ports of a model") : XM_OK;
}

bool
xm_port_is_static(const struct xm_port *port)
{
    for (uint32_t i = 0; i < port->type.shape.rank; i++) {
        if (!xm_bound_is_fixed(port->bound[i]))
            return false;
    }
    return true;
}

/* Returns the name of the port's node. For a result that is the node that computes it, because the
 * name of a result node is often generated and tells nothing. */
static const char *
node_of(const struct xm_node *n)
{
    return n->op == XM_OP_RESULT ? xm_in(n, 0)->node->name : n->name;
}

static enum xm_status
fill(struct xm_port *port, const struct xm_node *n, const struct xm_value *v,
     struct xm_arena *arena, struct xm_error *err)
{
    const char **names = xm_arena_alloc(arena, (v->n_names + 1) * sizeof(*names));
    if (!names)
        return xm_no_memory(err, "the ports of a model");
    for (uint32_t i = 0; i < v->n_names; i++) {
        names[i] = xm_arena_strdup(arena, v->names[i]);
        if (!names[i])
            return xm_no_memory(err, "the ports of a model");
    }
    *port =
        (struct xm_port){.name = xm_arena_strdup(arena, xm_port_name(n, v)),
                         .names = names,
                         .n_names = v->n_names,
                         .node = xm_arena_strdup(arena, node_of(n)),
                         .rows = n->op == XM_OP_PARAMETER ? xm_value_table_rows(v) : 0};
    return port->name && port->node ? XM_OK : xm_no_memory(err, "the ports of a model");
}

enum xm_status
xm_ports_from_graph(const struct xm_graph *g, struct xm_arena *arena,
                    struct xm_dim_pool *dims, struct xm_ports *out, struct xm_error *err)
{
    uint32_t n_in = 0, n_out = 0;
    xm_for_each_node(n, g)
    {
        n_in += n->op == XM_OP_PARAMETER;
        n_out += n->op == XM_OP_RESULT;
    }
    *out = (struct xm_ports){
        .inputs = xm_arena_alloc(arena, (n_in + 1) * sizeof(*out->inputs)),
        .outputs = xm_arena_alloc(arena, (n_out + 1) * sizeof(*out->outputs))};
    if (!out->inputs || !out->outputs)
        return xm_no_memory(err, "the ports of a model");
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_PARAMETER)
            XM_TRY(fill(&out->inputs[out->n_inputs++], n, &n->out[0], arena, err));
        else if (n->op == XM_OP_RESULT)
            XM_TRY(fill(&out->outputs[out->n_outputs++], n, named_value(n), arena, err));
    }
    return xm_ports_retype(g, dims, out, err);
}

uint32_t
xm_port_find(const struct xm_port *ports, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(ports[i].name, name) == 0)
            return i;
        for (uint32_t k = 0; k < ports[i].n_names; k++) {
            if (strcmp(ports[i].names[k], name) == 0)
                return i;
        }
    }
    return UINT32_MAX;
}
