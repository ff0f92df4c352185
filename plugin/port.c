/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/port.h"

#include <string.h>

#include "transformations/graph/graph.h"
#include "transformations/graph/table_rows.h"

const char *
xm_port_name(const struct xm_node *n, const struct xm_value *v)
{
    const char *name = n->attr.name.name;
    return v->n_names ? v->names[0] : name && name[0] ? name : n->name;
}

static enum xm_status
no_memory(struct xm_error *err)
{
    return xm_fail(err, XM_NO_MEMORY, "out of memory for the ports of a model");
}

static enum xm_status
fill(struct xm_port *port, const struct xm_node *n, const struct xm_value *v,
     struct xm_arena *arena, struct xm_dim_pool *dims, struct xm_error *err)
{
    const char **names = xm_arena_alloc(arena, (v->n_names + 1) * sizeof(*names));
    if (!names)
        return no_memory(err);
    for (uint32_t i = 0; i < v->n_names; i++) {
        names[i] = xm_arena_strdup(arena, v->names[i]);
        if (!names[i])
            return no_memory(err);
    }
    *port =
        (struct xm_port){.name = xm_arena_strdup(arena, xm_port_name(n, v)),
                         .names = names,
                         .n_names = v->n_names,
                         .type.element = v->type.element,
                         .type.shape.rank = v->type.shape.rank,
                         .rows = n->op == XM_OP_PARAMETER ? xm_value_table_rows(v) : 0};
    for (uint32_t i = 0; i < v->type.shape.rank; i++)
        port->type.shape.dim[i] = xm_dim_import(dims, v->type.shape.dim[i]);
    return port->name && !dims->failed ? XM_OK : no_memory(err);
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
        return no_memory(err);
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_PARAMETER)
            XM_TRY(fill(&out->inputs[out->n_inputs++], n, &n->out[0], arena, dims, err));
        else if (n->op == XM_OP_RESULT)
            XM_TRY(
                fill(&out->outputs[out->n_outputs++], n, xm_in(n, 0), arena, dims, err));
    }
    return XM_OK;
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
