/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as external plugins see it: nodes by index, attributes as texts like those of OpenVINO's
 * files.
 *
 * All of it is made before the plugin gets it, so that any thread can read it.
 */
#include <string.h>

#include "plugin/external/external.h"
#include "runtime/util/log.h"

_Static_assert((int)XM_EXT_LOST == (int)XM_LOST &&
                   (int)XM_EXT_CANCELLED == (int)XM_CANCELLED &&
                   (int)XM_EXT_NOT_FOUND == (int)XM_NOT_FOUND &&
                   (int)XM_EXT_INVALID == (int)XM_INVALID,
               "statuses are ours");
_Static_assert((int)XM_EXT_F32 == (int)XM_F32 && (int)XM_EXT_U8 == (int)XM_U8 &&
                   (int)XM_EXT_F8E8M0 == (int)XM_F8E8M0,
               "element types are ours");
_Static_assert(XM_EXT_RANK == XM_MAX_RANK, "tensors have as many dimensions as ours");
_Static_assert(sizeof(xm_ext_property) == sizeof(struct xm_property),
               "properties are handed on as they are");

/* ---- making the view ----------------------------------------------------------------------- */

/* Whether the plugin sees an attribute: those that OpenVINO's files have; all attributes of an
 * operation that files do not have. */
static bool
has_attribute(const struct xm_node *n, const struct xm_attr_info *a)
{
    return a->ir_name || !xm_op_info(n->op)->ir_type;
}

static const char *
value_of(xm_ext_model *m, const struct xm_node *n, const struct xm_attr_info *a)
{
    struct xm_strbuf text = {0};
    if (a->kind == XM_ATTR_STRING) {
        const char *value = *(const char *const *)((const char *)&n->attr + a->offset);
        return value ? value : "";
    }
    xm_attr_print(&n->attr, a, &text);
    const char *value = xm_strbuf_ok(&text)
                            ? xm_arena_strdup(&m->graph->arena, xm_strbuf_text(&text))
                            : NULL;
    xm_strbuf_free(&text);
    return value;
}

static bool
view_attributes(xm_ext_model *m, uint32_t i)
{
    size_t n_rows = 0;
    const struct xm_node *n = m->nodes[i];
    const struct xm_attr_info *rows = xm_op_attrs(n->op, &n_rows);
    xm_ext_property *list =
        xm_arena_alloc(&m->graph->arena, (n_rows + 1) * sizeof(*list));
    m->attributes[i] = list;
    for (size_t k = 0; list && k < n_rows; k++) {
        if (!has_attribute(n, &rows[k]))
            continue;
        xm_ext_property *a = &list[m->views[i].n_attributes++];
        a->key = rows[k].ir_name ? rows[k].ir_name : rows[k].text;
        a->value = value_of(m, n, &rows[k]);
        if (!a->value)
            return false;
    }
    return list != NULL;
}

static bool
view_operands(xm_ext_model *m, uint32_t i, const uint32_t *index)
{
    const struct xm_node *n = m->nodes[i];
    xm_ext_value *in = xm_arena_alloc(&m->graph->arena, (n->n_in + 1u) * sizeof(*in));
    for (uint32_t k = 0; in && k < n->n_in; k++) {
        const struct xm_value *v = xm_in(n, k);
        in[k] = xm_is_none(v) ? (xm_ext_value){XM_EXT_NONE, 0}
                              : (xm_ext_value){index[v->node->id], v->index};
    }
    m->views[i].in = in;
    return in != NULL;
}

static bool
view_node(xm_ext_model *m, uint32_t i, const uint32_t *index)
{
    const struct xm_node *n = m->nodes[i];
    const struct xm_op_info *info = xm_op_info(n->op);
    m->views[i] = (xm_ext_node){.op = info->ir_type ? info->ir_type : info->text,
                                .name = n->name ? n->name : "",
                                .n_in = n->n_in,
                                .n_out = n->n_out};
    m->has_states |= (info->flags & XM_OPF_STATE) != 0;
    return view_operands(m, i, index) && view_attributes(m, i);
}

static enum xm_status
view(xm_ext_model *m, struct xm_error *err)
{
    struct xm_graph *g = m->graph;
    struct xm_arena *a = &g->arena;
    if (g->err.status != XM_OK)
        return xm_fail(err, g->err.status, "%s", g->err.text);
    XM_TRY(xm_ports_from_graph(g, a, &g->dims, &m->ports, err));
    uint32_t *index = xm_arena_alloc(a, (g->next_id + 1u) * sizeof(*index));
    m->nodes = xm_arena_alloc(a, (g->n_nodes + 1u) * sizeof(*m->nodes));
    m->views = xm_arena_alloc(a, (g->n_nodes + 1u) * sizeof(*m->views));
    m->attributes = xm_arena_alloc(a, (g->n_nodes + 1u) * sizeof(*m->attributes));
    if (!index || !m->nodes || !m->views || !m->attributes)
        return xm_no_memory(err, "a plugin's view of a model");
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_NONE)
            continue;
        index[n->id] = m->n;
        m->nodes[m->n++] = n;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        if (!view_node(m, i, index))
            return xm_no_memory(err, "a plugin's view of a model");
    }
    return XM_OK;
}

enum xm_status
xm_external_model_create(struct xm_graph *g, xm_ext_model **out, struct xm_error *err)
{
    xm_ext_model *m = xm_calloc(1, sizeof(*m));
    if (!m) {
        xm_graph_destroy(g);
        return xm_no_memory(err, "a plugin's view of a model");
    }
    m->refs = 1;
    m->graph = g;
    enum xm_status s = view(m, err);
    if (s == XM_OK)
        *out = m;
    else
        xm_external_model_release(m);
    return s;
}

/* The pointer is const for the plugin; only the reference count changes. */
static const xm_ext_model *
retain(const xm_ext_model *m)
{
    xm_refs_add(&((xm_ext_model *)m)->refs);
    return m;
}

void
xm_external_model_release(const xm_ext_model *m)
{
    xm_ext_model *mine = (xm_ext_model *)m;
    if (!mine || xm_refs_drop(&mine->refs) != 0)
        return;
    xm_graph_destroy(mine->graph);
    xm_free(mine);
}

/* ---- functions of struct xm_ext_host ------------------------------------------------------- */

static const char *
model_name(const xm_ext_model *m)
{
    return m->graph->name ? m->graph->name : "";
}

static uint32_t
model_nodes(const xm_ext_model *m)
{
    return m->n;
}

static void
model_node(const xm_ext_model *m, uint32_t node, xm_ext_node *out)
{
    *out = node < m->n ? m->views[node] : (xm_ext_node){.op = "", .name = ""};
}

static void
model_attribute(const xm_ext_model *m, uint32_t node, uint32_t i, const char **key,
                const char **value)
{
    const bool is_there = node < m->n && i < m->views[node].n_attributes;
    *key = is_there ? m->attributes[node][i].key : "";
    *value = is_there ? m->attributes[node][i].value : "";
}

static void
fill_type(const struct xm_type *t, const struct xm_bound *bound, xm_ext_type *out)
{
    *out = (xm_ext_type){.element = (uint32_t)t->element, .rank = t->shape.rank};
    for (uint32_t i = 0; i < t->shape.rank; i++) {
        const struct xm_dim d = t->shape.dim[i];
        const bool is_fixed = xm_dim_is_const(d);
        out->min[i] = bound ? bound[i].min : is_fixed ? d.n : 0;
        out->max[i] = bound ? bound[i].max : is_fixed ? d.n : -1;
    }
}

static void
model_type(const xm_ext_model *m, xm_ext_value value, xm_ext_type *out)
{
    struct xm_bound bound[XM_MAX_RANK];
    *out = (xm_ext_type){0};
    if (value.node >= m->n || value.output >= m->nodes[value.node]->n_out)
        return;
    const struct xm_node *n = m->nodes[value.node];
    if (n->op == XM_OP_PARAMETER)
        xm_parameter_bounds(n, bound);
    fill_type(&n->out[value.output].type, n->op == XM_OP_PARAMETER ? bound : NULL, out);
}

static uint32_t
model_ports(const xm_ext_model *m, uint32_t is_output)
{
    return is_output ? m->ports.n_outputs : m->ports.n_inputs;
}

/* Returns the node of port i: the i-th node with this operation. */
static uint32_t
node_of_port(const xm_ext_model *m, enum xm_op op, uint32_t i)
{
    uint32_t node = 0;
    while (m->nodes[node]->op != op || i-- > 0)
        node++;
    return node;
}

static void
model_port(const xm_ext_model *m, uint32_t is_output, uint32_t i, xm_ext_port *out)
{
    *out = (xm_ext_port){.name = "", .node = XM_EXT_NONE};
    if (i >= model_ports(m, is_output))
        return;
    const struct xm_port *p = is_output ? &m->ports.outputs[i] : &m->ports.inputs[i];
    out->name = p->name;
    out->names = p->names;
    out->n_names = p->n_names;
    out->node = node_of_port(m, is_output ? XM_OP_RESULT : XM_OP_PARAMETER, i);
    fill_type(&p->type, p->bound, &out->type);
}

static int32_t
model_constant(const xm_ext_model *m, uint32_t node, xm_ext_tensor *out)
{
    *out = (xm_ext_tensor){0};
    if (node >= m->n || !xm_value_is_const(&m->nodes[node]->out[0]))
        return XM_EXT_INVALID;
    const struct xm_node *n = m->nodes[node];
    if (n->op != XM_OP_CONST)
        return XM_EXT_UNSUPPORTED;
    const struct xm_type *t = &n->out[0].type;
    out->element = (uint32_t)t->element;
    out->rank = t->shape.rank;
    for (uint32_t i = 0; i < t->shape.rank; i++)
        out->dim[i] = t->shape.dim[i].n;
    out->data = (void *)n->attr.data.bytes; /* read-only, as the header says */
    out->bytes = n->attr.data.n_bytes;
    return XM_EXT_OK;
}

static void
log_line(int32_t level, const char *line)
{
    const bool is_known = level >= XM_LOG_ERROR && level <= XM_LOG_DEBUG;
    xm_log(is_known ? (enum xm_log_level)level : XM_LOG_ERROR, "%s", line);
}

const xm_ext_host *
xm_external_host(void)
{
    static const xm_ext_host host = {
        .version = XM_EXT_VERSION,
        .bytes = sizeof(xm_ext_host),
        .release = "xemoe " XM_VERSION,
        .log = log_line,
        .model_name = model_name,
        .model_nodes = model_nodes,
        .model_node = model_node,
        .model_attribute = model_attribute,
        .model_type = model_type,
        .model_ports = model_ports,
        .model_port = model_port,
        .model_constant = model_constant,
        .model_retain = retain,
        .model_release = xm_external_model_release,
        .run_node = xm_external_run_node,
    };
    return &host;
}
