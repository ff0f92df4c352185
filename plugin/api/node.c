/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports. A handle is a copy of a port's facts; functions find the port itself by its name.
 */
#include <string.h>

#include "plugin/api/api.h"
#include "xemoe/xemoe.h"

/* ---- handles ----------------------------------------------------------------------- */

static struct xm_api_found
create_port(const struct xm_port *from, bool is_output)
{
    const char *node = from->node ? from->node : from->name;
    const size_t n = strlen(from->name) + 1, n_node = strlen(node) + 1;
    struct xm_api_port *p = xm_calloc(1, sizeof(*p) + n + n_node);
    if (!p)
        return (struct xm_api_found){
            xm_api_fail(GENERAL_ERROR, "out of memory for port %s", from->name), NULL};
    p->is_output = is_output;
    p->is_named = from->n_names != 0;
    p->element = from->type.element;
    p->rank = from->type.shape.rank;
    memcpy(p->dim, from->bound, sizeof(p->dim));
    p->name = memcpy(p + 1, from->name, n);
    p->node = memcpy((char *)(p + 1) + n, node, n_node);
    ov_status_e s = xm_api_new_handle(p, XM_API_PORT);
    if (s == OK)
        return (struct xm_api_found){OK, p};
    xm_free(p);
    return (struct xm_api_found){s, NULL};
}

static const char *
kind_of(struct xm_api_ports p)
{
    return p.is_output ? "output" : "input";
}

struct xm_api_found
xm_api_port_only(struct xm_api_ports p)
{
    if (p.n != 1)
        return (struct xm_api_found){
            xm_api_fail(GENERAL_ERROR,
                        "the model has %u %ss: choose one by name or index", p.n,
                        kind_of(p)),
            NULL};
    return create_port(&p.list[0], p.is_output);
}

struct xm_api_found
xm_api_port_by_index(struct xm_api_ports p, size_t index, ov_status_e missing)
{
    if (index >= p.n)
        return (struct xm_api_found){xm_api_fail(missing,
                                                 "there is no %s %zu: the model has %u",
                                                 kind_of(p), index, p.n),
                                     NULL};
    return create_port(&p.list[index], p.is_output);
}

struct xm_api_found
xm_api_port_by_name(struct xm_api_ports p, const char *name)
{
    uint32_t i = xm_port_find(p.list, p.n, name);
    if (i == UINT32_MAX)
        return (struct xm_api_found){
            xm_api_fail(GENERAL_ERROR, "Port for tensor name %s was not found", name),
            NULL};
    return create_port(&p.list[i], p.is_output);
}

ov_status_e
xm_api_give_port(struct xm_api_found found, ov_output_port_t **out)
{
    if (found.status == OK)
        *out = (ov_output_port_t *)found.port;
    return found.status;
}

ov_status_e
xm_api_give_const_port(struct xm_api_found found, ov_output_const_port_t **out)
{
    if (found.status == OK)
        *out = (ov_output_const_port_t *)found.port;
    return found.status;
}

void
ov_output_port_free(ov_output_port_t *port)
{
    if (xm_api_handle_drop(port, XM_API_PORT))
        xm_free(port);
}

void
ov_output_const_port_free(ov_output_const_port_t *port)
{
    if (xm_api_handle_drop(port, XM_API_PORT))
        xm_free(port);
}

/* ---- facts about a port -------------------------------------------------------------------- */

static ov_status_e
get_shape(const struct xm_api_port *p, ov_shape_t *shape)
{
    int64_t dim[XM_MAX_RANK];
    for (uint32_t i = 0; i < p->rank; i++) {
        if (!xm_bound_is_fixed(p->dim[i]))
            return xm_api_fail(GENERAL_ERROR, "the shape of port %s is dynamic", p->name);
        dim[i] = p->dim[i].min;
    }
    if (p->rank > 0)
        return ov_shape_create(p->rank, dim, shape);
    *shape = (ov_shape_t){0, NULL};
    return OK;
}

ov_status_e
ov_const_port_get_shape(const ov_output_const_port_t *port, ov_shape_t *tensor_shape)
{
    return xm_api_is(port, XM_API_PORT) && tensor_shape
               ? get_shape(xm_api_const_port(port), tensor_shape)
               : xm_api_refuse(__func__);
}

ov_status_e
ov_port_get_shape(const ov_output_port_t *port, ov_shape_t *tensor_shape)
{
    return xm_api_is(port, XM_API_PORT) && tensor_shape
               ? get_shape(xm_api_port(port), tensor_shape)
               : xm_api_refuse(__func__);
}

ov_status_e
xm_port_node_name(const ov_output_const_port_t *port, char **node_name)
{
    if (!xm_api_is(port, XM_API_PORT) || !node_name)
        return xm_api_refuse(__func__);
    char *copy = xm_strdup(xm_api_const_port(port)->node);
    if (!copy)
        return xm_api_fail(GENERAL_ERROR, "out of memory for the name of a port's node");
    *node_name = copy;
    return OK;
}

ov_status_e
ov_port_get_any_name(const ov_output_const_port_t *port, char **tensor_name)
{
    if (!xm_api_is(port, XM_API_PORT) || !tensor_name)
        return xm_api_refuse(__func__);
    const struct xm_api_port *p = xm_api_const_port(port);
    if (!p->is_named)
        return xm_api_fail(GENERAL_ERROR, "port '%s' has no tensor name", p->name);
    char *copy = xm_strdup(p->name);
    if (!copy)
        return xm_api_fail(GENERAL_ERROR, "out of memory for the name of a port");
    *tensor_name = copy;
    return OK;
}

ov_status_e
ov_port_get_partial_shape(const ov_output_const_port_t *port,
                          ov_partial_shape_t *partial_shape)
{
    if (!xm_api_is(port, XM_API_PORT) || !partial_shape)
        return xm_api_refuse(__func__);
    const struct xm_api_port *p = xm_api_const_port(port);
    ov_partial_shape_t shape = {.rank = {p->rank, p->rank}, .dims = NULL};
    if (p->rank > 0) {
        shape.dims = xm_calloc(p->rank, sizeof(*shape.dims));
        if (!shape.dims)
            return xm_api_fail(GENERAL_ERROR, "out of memory for the shape of a port");
    }
    for (uint32_t i = 0; i < p->rank; i++)
        shape.dims[i] = (ov_dimension_t){p->dim[i].min, p->dim[i].max};
    *partial_shape = shape;
    return OK;
}

ov_status_e
ov_port_get_element_type(const ov_output_const_port_t *port,
                         ov_element_type_e *tensor_type)
{
    if (!xm_api_is(port, XM_API_PORT) || !tensor_type)
        return xm_api_refuse(__func__);
    *tensor_type = (ov_element_type_e)xm_api_const_port(port)->element;
    return OK;
}
