/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds nodes from records, in the order that ir_link.c found: one node for a layer, or several if
 * ir_composed.c has the layer type.
 *
 * The table of operations gives the meaning of a layer type, its opsets and numbers of ports; the
 * table of attributes gives the names of its attributes. Only layers that declare their own type
 * (parameter, constant, state) have code here. The results' types in the file are not trusted but
 * compared with those that the shape functions compute.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "plugin/readers/ir_records.h"
#include "runtime/util/compiler.h"
#include "runtime/util/log.h"
#include "runtime/util/strbuf.h"
#include "transformations/graph/builder.h"

struct build {
    struct xm_graph *graph;
    struct xm_builder builder;
    const struct xm_ir_weights *weights;
    struct xm_ir_joint *joint; /* NULL: the net is the whole graph */
    bool knows_lengths;        /* the result of xm_ir_tells_lengths */
    struct xm_error *err;
};

/* Copies the builder's failure to s->err. */
static enum xm_status
graph_failed(struct build *s)
{
    const struct xm_error *cause = &s->graph->err;
    if (cause->status == XM_OK || s->graph->dims.failed)
        return xm_fail(s->err, XM_NO_MEMORY, "out of memory");
    return xm_fail(s->err, cause->status, "%s", cause->text);
}

/* ---- attributes ------------------------------------------------------------------ */

static enum xm_status
need_u64(struct build *s, const struct xm_ir_layer *l, const char *key, uint64_t *out)
{
    const char *text = NULL;
    XM_TRY(xm_ir_need(l, key, &text, s->err));
    if (!xm_ir_parse_u64(text, out))
        return xm_fail(s->err, XM_INVALID, "%s=\"%.40s\", expected a number", key, text);
    return XM_OK;
}

static enum xm_status
need_element(struct build *s, const struct xm_ir_layer *l, const char *key,
             enum xm_element *out)
{
    const char *text = NULL;
    XM_TRY(xm_ir_need(l, key, &text, s->err));
    *out = xm_element_parse(text);
    if (*out == XM_ELEMENT_COUNT)
        return xm_fail(s->err, XM_INVALID, "%s=\"%.40s\" is not an element type", key,
                       text);
    if (xm_element_bits(*out) == 0)
        return xm_fail(s->err, XM_UNSUPPORTED, "element type '%s' is not supported",
                       text);
    return XM_OK;
}

static enum xm_status
need_shape(struct build *s, const struct xm_ir_layer *l, const char *key, int64_t *dim,
           uint32_t *rank)
{
    const char *text = NULL;
    XM_TRY(xm_ir_need(l, key, &text, s->err));
    const char *why = xm_ir_parse_shape(text, dim, rank);
    return why ? xm_fail(s->err, XM_INVALID, "%s=\"%.80s\" %s", key, text, why) : XM_OK;
}

/* Attributes without a row in the attribute table, and their only allowed value. */
static const struct {
    /* only NULL: any value, because it does not affect specified results */
    const char *key, *only;
} extra_attributes[] = {
    {"auto_broadcast", "numpy"},
    {"stable", NULL},
};

static enum xm_status
check_extra(struct build *s, const struct xm_ir_layer *l, const struct xm_ir_text *a)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(extra_attributes); i++) {
        const char *only = extra_attributes[i].only;
        if (strcmp(extra_attributes[i].key, a->key) != 0)
            continue;
        if (only && strcasecmp(only, a->value) != 0)
            return xm_fail(s->err, XM_UNSUPPORTED,
                           "%s=\"%.40s\" is not supported, expected \"%s\"", a->key,
                           a->value, only);
        return XM_OK;
    }
    xm_log(XM_LOG_DEBUG,
           "layer '%s' (%s): attribute %s=\"%s\" is not known and is ignored", l->name,
           l->type, a->key, a->value);
    return XM_OK;
}

static bool
has_row(const struct xm_attr_info *rows, size_t n, const char *ir_name)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].ir_name && strcmp(rows[i].ir_name, ir_name) == 0)
            return true;
    }
    return false;
}

static enum xm_status
read_attributes(struct build *s, const struct xm_ir_layer *l, enum xm_op op,
                union xm_attr *attr)
{
    size_t n = 0;
    const struct xm_attr_info *rows = xm_op_attrs(op, &n);
    if (xm_attr_defaults(s->graph, op, attr) != XM_OK)
        return graph_failed(s);
    for (size_t i = 0; i < n; i++) {
        const char *value = rows[i].ir_name ? xm_ir_attr(l, rows[i].ir_name) : NULL;
        if (value)
            XM_TRY(xm_attr_set(s->graph, attr, &rows[i], value, s->err));
        else if (rows[i].ir_name && !rows[i].default_text)
            XM_TRY(xm_ir_need(l, rows[i].ir_name, &value, s->err));
    }
    for (const struct xm_ir_text *a = l->data; a; a = a->next) {
        if (!has_row(rows, n, a->key))
            XM_TRY(check_extra(s, l, a));
    }
    return XM_OK;
}

/* ---- layers that declare their type ---------------------------------------------- */

/* Sets *out to the node of its only value. v NULL: the builder has failed. */
static enum xm_status
made(struct build *s, struct xm_value *v, struct xm_node **out)
{
    if (!v || s->graph->dims.failed)
        return graph_failed(s);
    *out = v->node;
    return XM_OK;
}

static enum xm_status
build_parameter(struct build *s, const struct xm_ir_layer *l, struct xm_node **out)
{
    struct xm_type type = {.element = XM_DYNAMIC};
    int64_t dim[XM_MAX_RANK];
    uint32_t rank;
    XM_TRY(need_element(s, l, "element_type", &type.element));
    XM_TRY(need_shape(s, l, "shape", dim, &rank));
    xm_ir_input_shape(s->graph, l, dim, rank, s->knows_lengths, &type.shape);
    XM_TRY(made(s, xm_parameter(&s->builder, s->builder.name, &type), out));
    if (!strstr(xm_ir_attr(l, "shape"), ".."))
        return XM_OK;
    (*out)->attr.parameter.bounds =
        xm_arena_strdup(&s->graph->arena, xm_ir_attr(l, "shape"));
    return (*out)->attr.parameter.bounds ? XM_OK
                                         : xm_no_memory(s->err, "the bounds of an input");
}

/* Computes the bytes of a constant of this type. */
static enum xm_status
constant_bytes(struct build *s, const char *shape, const struct xm_type *type,
               uint64_t *bytes)
{
    uint64_t n = 1;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        empty |= type->shape.dim[i].n == 0;
        fits = fits && xm_mul_size(n, (uint64_t)type->shape.dim[i].n, &n);
    }
    *bytes = 0;
    if (!empty && (!fits || !xm_element_bytes(type->element, n, bytes)))
        return xm_fail(s->err, XM_INVALID, "the shape [%.80s] of %s overflows", shape,
                       xm_element_text(type->element));
    return XM_OK;
}

/* Finds a constant's bytes in the weights, and checks them against its type and the file's size. */
static enum xm_status
constant_data(struct build *s, const struct xm_ir_layer *l, const struct xm_type *type,
              struct xm_data *out)
{
    const struct xm_ir_weights *w = s->weights;
    const char *shape = xm_ir_attr(l, "shape");
    uint64_t offset, size, expected, end;
    XM_TRY(need_u64(s, l, "offset", &offset));
    XM_TRY(need_u64(s, l, "size", &size));
    XM_TRY(constant_bytes(s, shape, type, &expected));
    if (expected == 0 &&
        size == 1) /* some files have one byte for a constant without elements */
        size = 0;
    if (size != expected)
        return xm_fail(s->err, XM_INVALID,
                       "the size is %" PRIu64
                       " bytes, but the shape [%.80s] of %s needs %" PRIu64,
                       size, shape, xm_element_text(type->element), expected);
    *out = (struct xm_data){(const uint8_t *)"", 0};
    if (size == 0)
        return XM_OK;
    if (!w->bytes)
        return xm_fail(s->err, XM_NOT_FOUND,
                       "the layer needs %" PRIu64
                       " bytes of weights, but there is no %.200s",
                       size, w->name);
    if (!xm_add_size(offset, size, &end) || end > w->n_bytes)
        return xm_fail(s->err, XM_INVALID,
                       "%" PRIu64 " bytes at offset %" PRIu64
                       " lie outside %.200s, which has %" PRIu64 " bytes",
                       size, offset, w->name, w->n_bytes);
    *out = (struct xm_data){w->bytes + offset, size};
    return XM_OK;
}

static enum xm_status
build_const(struct build *s, const struct xm_ir_layer *l, struct xm_node **out)
{
    struct xm_type type = {.element = XM_DYNAMIC};
    struct xm_data data;
    int64_t dim[XM_MAX_RANK];
    XM_TRY(need_element(s, l, "element_type", &type.element));
    XM_TRY(need_shape(s, l, "shape", dim, &type.shape.rank));
    for (uint32_t i = 0; i < type.shape.rank; i++) {
        if (dim[i] < 0)
            return xm_fail(s->err, XM_INVALID,
                           "the shape [%.80s] of a constant is dynamic",
                           xm_ir_attr(l, "shape"));
        type.shape.dim[i] = xm_dim_const(dim[i]);
    }
    XM_TRY(constant_data(s, l, &type, &data));
    return made(s, xm_const(&s->builder, &type, data), out);
}

/* Finds the type of a state. In opset 3 it has no type attributes: its element type is that of the
 * initial value, and its shape that of the output port (the initial value may have another
 * length). */
static enum xm_status
state_type(struct build *s, const struct xm_ir_layer *l, const char *variable,
           const struct xm_value *init, struct xm_type *type)
{
    int64_t dim[XM_MAX_RANK];
    uint32_t rank;
    if (xm_ir_attr(l, "variable_type") || xm_ir_attr(l, "variable_shape")) {
        XM_TRY(need_element(s, l, "variable_type", &type->element));
        XM_TRY(need_shape(s, l, "variable_shape", dim, &rank));
        xm_ir_state_shape(s->graph, variable, dim, rank, &type->shape);
        return XM_OK;
    }
    if (xm_is_none(init))
        return xm_fail(s->err, XM_INVALID,
                       "the state has neither variable_type nor an initial value");
    type->element = init->type.element;
    if (l->out.first)
        xm_ir_state_shape(s->graph, variable, l->out.first->dim, l->out.first->rank,
                          &type->shape);
    else
        type->shape = init->type.shape;
    return XM_OK;
}

static enum xm_status
build_read_value(struct build *s, const struct xm_ir_layer *l, struct xm_value *const *in,
                 struct xm_node **out)
{
    struct xm_type type = {.element = XM_DYNAMIC};
    const char *variable = NULL;
    struct xm_value *init = l->in.n ? in[0] : xm_none(s->graph);
    if (!init)
        return graph_failed(s);
    XM_TRY(xm_ir_need(l, "variable_id", &variable, s->err));
    XM_TRY(state_type(s, l, variable, init, &type));
    return made(s, xm_read_value(&s->builder, variable, &type, init), out);
}

/* Adds a result, named by its tensor if it has a name, because the layer's name is one such as
 * "Result_3396". */
static enum xm_status
build_result(struct build *s, const struct xm_ir_layer *l, struct xm_value *x,
             struct xm_node **out)
{
    const char *const *names = x->names;
    uint32_t n = x->n_names;
    if (l->output_names)
        XM_TRY(xm_ir_split_names(&s->graph->arena, l->output_names, &names, &n, s->err));
    struct xm_value *v = xm_result(&s->builder, n ? names[0] : s->builder.name, x);
    XM_TRY(made(s, v, out));
    v->names = names;
    v->n_names = n;
    return XM_OK;
}

static enum xm_status
build_node(struct build *s, const struct xm_ir_layer *l, enum xm_op op,
           struct xm_value *const *in, struct xm_node **out)
{
    union xm_attr attr;
    switch (op) {
    case XM_OP_PARAMETER:
        return build_parameter(s, l, out);
    case XM_OP_CONST:
        return build_const(s, l, out);
    case XM_OP_READ_VALUE:
        return build_read_value(s, l, in, out);
    case XM_OP_RESULT:
        return build_result(s, l, in[0], out);
    default:
        memset(&attr, 0, sizeof(attr));
        XM_TRY(read_attributes(s, l, op, &attr));
        *out = xm_node_build(&s->builder, op, &attr, in, l->in.n);
        return *out && !s->graph->dims.failed ? XM_OK : graph_failed(s);
    }
}

/* ---- what the file says about results -------------------------------------------- */

static enum xm_status
check_element(struct build *s, const struct xm_ir_port *p, const struct xm_type *found)
{
    enum xm_element e = p->precision ? xm_element_parse(p->precision) : XM_DYNAMIC;
    if (e == XM_ELEMENT_COUNT)
        return xm_fail(s->err, XM_INVALID,
                       "output port %" PRIu64 " has precision \"%.40s\", which is not an "
                       "element type",
                       p->id, p->precision);
    if (e != XM_DYNAMIC && e != found->element)
        return xm_fail(s->err, XM_INVALID,
                       "the file says that output port %" PRIu64 " is %s, but it is %s",
                       p->id, xm_element_text(e), xm_element_text(found->element));
    return XM_OK;
}

static bool
shapes_agree(const struct xm_ir_port *p, const struct xm_shape *found)
{
    if (p->rank != found->rank)
        return false;
    for (uint32_t i = 0; i < p->rank; i++) {
        if (p->dim[i] >= 0 && xm_dim_is_const(found->dim[i]) &&
            found->dim[i].n != p->dim[i])
            return false;
    }
    return true;
}

static enum xm_status
shape_error(struct build *s, const struct xm_ir_port *p, const struct xm_type *found)
{
    struct xm_strbuf said = {0}, is = {0};
    for (uint32_t i = 0; i < p->rank; i++)
        xm_strbuf_printf(&said, "%s%" PRId64, i ? "," : "", p->dim[i]);
    xm_type_print(found, &is);
    enum xm_status status =
        xm_fail(s->err, XM_INVALID,
                "the file says that output port %" PRIu64 " has shape [%.80s], but it is "
                "%.120s",
                p->id, xm_strbuf_text(&said), xm_strbuf_text(&is));
    xm_strbuf_free(&said);
    xm_strbuf_free(&is);
    return status;
}

/* Checks the results against the layer's output ports, and stores them there for the layers that
 * use them. */
static enum xm_status
take_results(struct build *s, const struct xm_ir_layer *l, struct xm_node *n)
{
    bool sink = n->op == XM_OP_RESULT || n->op == XM_OP_ASSIGN;
    if (l->out.n != n->n_out && !(sink && l->out.n == 0))
        return xm_fail(s->err, XM_INVALID, "it has %u output ports, expected %u",
                       l->out.n, n->n_out);
    struct xm_value *v = n->out;
    for (struct xm_ir_port *p = l->out.first; p; p = p->next, v++) {
        XM_TRY(check_element(s, p, &v->type));
        if (!shapes_agree(p, &v->type.shape))
            return shape_error(s, p, &v->type);
        if (p->names)
            XM_TRY(xm_ir_split_names(&s->graph->arena, p->names, &v->names, &v->n_names,
                                     s->err));
        p->value = v;
    }
    return XM_OK;
}

/* ---- one layer ------------------------------------------------------------------- */

/* Returns whether `version`, such as "opset8", is in a list of opset numbers such as "1,7,8". */
static bool
opset_is_listed(const char *version, const char *opsets)
{
    const char *number = version + strlen("opset");
    size_t n = strlen(number);
    if (strncmp(version, "opset", strlen("opset")) != 0 || n == 0)
        return false;
    for (const char *at = opsets; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strcspn(at, ",") == n && memcmp(at, number, n) == 0)
            return true;
    }
    return false;
}

/* The operation that a layer becomes. */
struct meaning {
    enum xm_op op; /* XM_OP_COUNT: several, by ir_composed.c */
    const char *opsets;
    int min_in, max_in; /* max_in -1: any number */
};

static enum xm_status
find_meaning(struct build *s, const struct xm_ir_layer *l, struct meaning *out)
{
    const char *version = l->version ? l->version : "(none)";
    const enum xm_op op = xm_op_by_ir_type(l->type);
    uint32_t n_in = 0;
    if (op != XM_OP_COUNT) {
        const struct xm_op_info *info = xm_op_info(op);
        *out = (struct meaning){op, info->opsets, info->min_in, info->max_in};
    } else {
        const char *opsets = xm_ir_composed_opsets(l->type, &n_in);
        *out = (struct meaning){op, opsets, (int)n_in, (int)n_in};
    }
    if (!out->opsets)
        return xm_fail(s->err, XM_UNSUPPORTED,
                       "operation '%.80s' of opset '%.40s' is not known", l->type,
                       version);
    if (!l->version || !opset_is_listed(version, out->opsets))
        return xm_fail(
            s->err, XM_UNSUPPORTED,
            "operation '%s' of opset '%.40s' is not supported, expected opset %s",
            l->type, version, out->opsets);
    return XM_OK;
}

static enum xm_status
check_n_inputs(struct build *s, const struct xm_ir_layer *l, const struct meaning *m)
{
    const int n = (int)l->in.n, min = m->min_in, max = m->max_in;
    if (n >= min && (max < 0 || n <= max))
        return XM_OK;
    if (max == min)
        return xm_fail(s->err, XM_INVALID, "it has %d input ports, expected %d", n, min);
    if (max < 0)
        return xm_fail(s->err, XM_INVALID, "it has %d input ports, expected at least %d",
                       n, min);
    return xm_fail(s->err, XM_INVALID, "it has %d input ports, expected %d to %d", n, min,
                   max);
}

static enum xm_status
compose(struct build *s, const struct xm_ir_layer *l, struct xm_value *const *in,
        struct xm_node **out)
{
    struct xm_value *v = xm_ir_compose(&s->builder, l, in, s->err);
    return s->err->status == XM_OK ? made(s, v, out) : s->err->status;
}

static enum xm_status
build_as(struct build *s, const struct xm_ir_layer *l, const struct meaning *m)
{
    struct xm_node *node = NULL;
    XM_TRY(check_n_inputs(s, l, m));
    struct xm_value **in = xm_calloc(l->in.n + 1u, sizeof(*in));
    s->builder.name = l->name; /* every new node copies it */
    uint32_t i = 0;
    for (const struct xm_ir_port *p = l->in.first; in && p; p = p->next)
        in[i++] = p->from_port->value;
    enum xm_status status = !in                    ? graph_failed(s)
                            : m->op == XM_OP_COUNT ? compose(s, l, in, &node)
                                                   : build_node(s, l, m->op, in, &node);
    xm_free(in);
    return status == XM_OK ? take_results(s, l, node) : status;
}

/* If a layer is an input or a result inside of the joined graph, connects it without a node and
 * sets *is_joined. */
static enum xm_status
join_layer(struct build *s, struct xm_ir_layer *l, bool *is_joined)
{
    static char ids[] = "input_ids";
    struct xm_ir_port *port = l->out.first;
    struct xm_value *v = NULL;
    *is_joined = false;
    if (s->joint->is_embeddings && strcmp(l->type, "Result") == 0 && l->in.n == 1) {
        *is_joined = true;
        s->joint->result = l->in.first->from_port->value;
    }
    if (strcmp(l->type, "Parameter") != 0)
        return XM_OK;
    XM_TRY(xm_ir_joint_input(s->joint, &s->builder, l, &v, s->err));
    *is_joined = v != NULL;
    if (!v && s->joint->is_embeddings && port) {
        l->name = ids; /* replaces the file's name for it */
        port->names = ids;
    }
    if (!v)
        return XM_OK;
    XM_TRY(check_element(s, port, &v->type));
    port->value = v;
    return shapes_agree(port, &v->type.shape) ? XM_OK : shape_error(s, port, &v->type);
}

static enum xm_status
build_layer(struct build *s, const struct xm_ir_layer *l)
{
    struct meaning m;
    enum xm_status status = find_meaning(s, l, &m);
    if (status == XM_OK) {
        status = build_as(s, l, &m);
        if (status != XM_OK)
            xm_error_prefix(s->err, "%s", l->type);
    }
    if (status != XM_OK)
        xm_error_prefix(s->err, "layer '%.80s' (id %" PRIu64 ")", l->name, l->id);
    return status;
}

enum xm_status
xm_ir_build(struct xm_ir_net *net, const struct xm_ir_weights *weights,
            struct xm_ir_joint *joint, struct xm_graph *g, struct xm_error *err)
{
    struct build s = {g,     xm_builder_at_end(g),     weights,
                      joint, xm_ir_tells_lengths(net), err};
    for (size_t i = 0; i < net->n_layers; i++) {
        struct xm_ir_layer *l = net->order[i];
        bool is_joined = false;
        if (joint && join_layer(&s, l, &is_joined) != XM_OK) {
            xm_error_prefix(err, "layer '%.80s' (id %" PRIu64 ")", l->name, l->id);
            return err->status;
        }
        if (!is_joined)
            XM_TRY(build_layer(&s, l));
        if (joint && joint->is_embeddings && !joint->ids &&
            strcmp(l->type, "Parameter") == 0)
            joint->ids = l->out.first->value;
    }
    if (joint && joint->is_embeddings)
        return XM_OK; /* the graph gets the properties of the language model */
    for (const struct xm_ir_text *p = net->first_property; p; p = p->next) {
        if (xm_graph_add_property(g, p->key, p->value) != XM_OK)
            return graph_failed(&s);
    }
    return XM_OK;
}
