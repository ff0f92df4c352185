/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets other shapes for a model's inputs: by name, by index, by port, or for the only input.
 */
#include "plugin/api/api.h"
#include "transformations/graph/reshape.h"

/* Reads a shape for an input. Returns NULL, or why no input can have the shape. Does not set
 * out->input. */
static const char *
read_shape(const ov_partial_shape_t *from, struct xm_input_shape *out)
{
    const int64_t rank = from->rank.max;
    if (from->rank.min != rank || rank < 0)
        return "the rank of an input cannot be dynamic";
    if (rank > XM_MAX_RANK)
        return "has more than 8 dimensions";
    out->rank = (uint32_t)rank;
    for (int64_t i = 0; i < rank; i++) {
        const ov_dimension_t d = from->dims[i];
        out->dim[i] =
            (struct xm_bound){d.min == -1 ? 0 : d.min, d.max == INT64_MAX ? -1 : d.max};
        if (d.max < -1 || d.min < -1 || (d.max >= 0 && d.min > d.max))
            return "has a dimension that is not a valid range";
    }
    return NULL;
}

static bool
lacks_dimensions(const ov_partial_shape_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i].rank.max > 0 && !s[i].dims)
            return true;
    }
    return false;
}

/* Finds the index of the input for the i-th shape. */
typedef ov_status_e (*which_input)(const ov_model_t *m, const void *list, size_t i,
                                   uint32_t *out);

static ov_status_e
reshape(const ov_model_t *model, which_input which, const void *list,
        const ov_partial_shape_t *shapes, size_t n)
{
    ov_model_t *m = (ov_model_t *)model; /* the API's signature has const */
    struct xm_error err = {0};
    const ov_status_e is_read = xm_api_model_check(model, "reshaped");
    if (is_read != OK)
        return is_read;
    if (n > m->ports.n_inputs) /* before `shapes` is read */
        return xm_api_fail(GENERAL_ERROR, "%zu shapes, but the model has %u inputs", n,
                           m->ports.n_inputs);
    if (lacks_dimensions(shapes, n))
        return xm_api_fail(INVALID_C_PARAM, "the dimensions of a shape are NULL");
    struct xm_input_shape *wanted = xm_calloc(n, sizeof(*wanted));
    if (!wanted)
        return xm_api_fail(GENERAL_ERROR, "out of memory for %zu shapes", n);
    ov_status_e status = OK;
    for (size_t i = 0; status == OK && i < n; i++) {
        const char *why = read_shape(&shapes[i], &wanted[i]);
        status = which(m, list, i, &wanted[i].input);
        if (status == OK && why)
            status = xm_api_fail(GENERAL_ERROR, "the shape for input '%s' %s",
                                 m->ports.inputs[wanted[i].input].name, why);
    }
    if (status == OK && xm_graph_reshape(m->graph, wanted, (uint32_t)n, &err) == XM_OK)
        xm_ports_retype(m->graph, &m->graph->dims, &m->ports, &err);
    xm_free(wanted);
    return status == OK ? xm_api_error(&err) : status;
}

/* ---- finding the input --------------------------------------------------------------------- */

static ov_status_e
by_name(const ov_model_t *m, const void *list, size_t i, uint32_t *out)
{
    const char *name = ((const char *const *)list)[i];
    *out = xm_port_find(m->ports.inputs, m->ports.n_inputs, name);
    return *out == UINT32_MAX
               ? xm_api_fail(GENERAL_ERROR, "Port for tensor name %s was not found", name)
               : OK;
}

/* The failure has the status of ov_model_input_by_index. */
static ov_status_e
by_index(const ov_model_t *m, const void *list, size_t i, uint32_t *out)
{
    const size_t index = ((const size_t *)list)[i];
    if (index >= m->ports.n_inputs)
        return xm_api_fail(UNKNOW_EXCEPTION, "there is no input %zu: the model has %u",
                           index, m->ports.n_inputs);
    *out = (uint32_t)index;
    return OK;
}

/* Chooses the first input. If there are others, xm_graph_reshape checks that their shapes agree. */
static ov_status_e
the_first(const ov_model_t *m, const void *list, size_t i, uint32_t *out)
{
    (void)m;
    (void)list;
    (void)i;
    *out = 0;
    return OK;
}

static ov_status_e
by_port(const ov_model_t *m, const void *list, size_t i, uint32_t *out)
{
    const struct xm_api_port *p = xm_api_port(((const ov_output_port_t *const *)list)[i]);
    return p->is_output ? xm_api_fail(GENERAL_ERROR, "port '%s' is not an input", p->name)
                        : by_name(m, &p->name, 0, out);
}

static bool
has_null(const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!list[i])
            return true;
    }
    return false;
}

static bool
has_no_port(const ov_output_port_t *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!xm_api_is(list[i], XM_API_PORT))
            return true;
    }
    return false;
}

/* ---- the functions ----------------------------------------------------------------- */

ov_status_e
ov_model_reshape(const ov_model_t *model, const char **tensor_names,
                 const ov_partial_shape_t *partial_shapes, size_t size)
{
    if (!xm_api_is(model, XM_API_MODEL) || !tensor_names || !partial_shapes ||
        size == 0 || has_null(tensor_names, size))
        return xm_api_refuse(__func__);
    return reshape(model, by_name, tensor_names, partial_shapes, size);
}

ov_status_e
ov_model_reshape_input_by_name(const ov_model_t *model, const char *tensor_name,
                               const ov_partial_shape_t partial_shape)
{
    if (!xm_api_is(model, XM_API_MODEL) || !tensor_name)
        return xm_api_refuse(__func__);
    return reshape(model, by_name, &tensor_name, &partial_shape, 1);
}

ov_status_e
ov_model_reshape_single_input(const ov_model_t *model,
                              const ov_partial_shape_t partial_shape)
{
    return xm_api_is(model, XM_API_MODEL)
               ? reshape(model, the_first, NULL, &partial_shape, 1)
               : xm_api_refuse(__func__);
}

ov_status_e
ov_model_reshape_by_port_indexes(const ov_model_t *model, const size_t *port_indexes,
                                 const ov_partial_shape_t *partial_shape, size_t size)
{
    if (!xm_api_is(model, XM_API_MODEL) || !port_indexes || !partial_shape || size == 0)
        return xm_api_refuse(__func__);
    return reshape(model, by_index, port_indexes, partial_shape, size);
}

ov_status_e
ov_model_reshape_by_ports(const ov_model_t *model, const ov_output_port_t **output_ports,
                          const ov_partial_shape_t *partial_shapes, size_t size)
{
    if (!xm_api_is(model, XM_API_MODEL) || !output_ports || !partial_shapes ||
        size == 0 || has_no_port(output_ports, size))
        return xm_api_refuse(__func__);
    return reshape(model, by_port, output_ports, partial_shapes, size);
}
