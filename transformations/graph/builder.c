/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes nodes in this order: number of operands, attributes, memory, operands, types, place in the
 * graph. So a node that fails leaves no trace in the uses of its operands.
 *
 * A node's id counts values, not nodes: it reserves one number for each result, and
 * result i is printed as %(id + i).
 */
#include "transformations/graph/builder.h"

#include <string.h>

#include "transformations/graph/infer.h"

enum { MAX_RESULTS = 4096, MAX_NAMED = 20 };
_Static_assert((int)XM_MOE_N_IN <= MAX_NAMED && (int)XM_ATTENTION_N_IN <= MAX_NAMED,
               "MAX_NAMED is too small");

static void *
fail_memory(struct xm_graph *g)
{
    xm_no_memory(&g->err, "a node of the graph");
    return NULL;
}

/* ---- attributes -------------------------------------------------------------------- */

static enum xm_status
own_strings(struct xm_graph *g, enum xm_op op, union xm_attr *attr)
{
    size_t n;
    const struct xm_attr_info *info = xm_op_attrs(op, &n);
    for (size_t i = 0; i < n; i++) {
        if (info[i].kind != XM_ATTR_STRING)
            continue;
        const char **s = (const char **)((char *)attr + info[i].offset);
        *s = *s && **s ? xm_arena_strdup(&g->arena, *s) : "";
        if (!*s)
            return XM_NO_MEMORY;
    }
    if (op == XM_OP_SHAPE_VALUE && attr->shape_value.n) {
        size_t bytes = attr->shape_value.n * sizeof(struct xm_dim);
        struct xm_dim *e = xm_arena_alloc(&g->arena, bytes);
        if (!e)
            return XM_NO_MEMORY;
        attr->shape_value.e = memcpy(e, attr->shape_value.e, bytes);
    }
    return XM_OK;
}

static enum xm_status
complete_attr(struct xm_graph *g, enum xm_op op, const union xm_attr *given,
              union xm_attr *attr)
{
    size_t n;
    const struct xm_attr_info *info = xm_op_attrs(op, &n);
    if (given) {
        *attr = *given;
        return own_strings(g, op, attr) == XM_OK ? XM_OK : (fail_memory(g), XM_NO_MEMORY);
    }
    for (size_t i = 0; i < n; i++)
        if (!info[i].default_text)
            return xm_fail(&g->err, XM_INVALID, "%s needs the attribute %s",
                           xm_op_info(op)->text, info[i].text);
    return xm_attr_defaults(g, op, attr);
}

/* ---- nodes ------------------------------------------------------------------------- */

static enum xm_status
check_arity(struct xm_graph *g, enum xm_op op, uint32_t n_in)
{
    const struct xm_op_info *info = xm_op_info(op);
    if (n_in < (uint32_t)info->min_in ||
        (info->max_in >= 0 && n_in > (uint32_t)info->max_in))
        return xm_fail(&g->err, XM_INVALID, "%s takes %d to %d operands, not %u",
                       info->text, info->min_in, info->max_in, n_in);
    return XM_OK;
}

/* Sets *out to the number of results of an op for which it depends on attributes or operands. */
static enum xm_status
count_results(struct xm_graph *g, enum xm_op op, const union xm_attr *attr,
              struct xm_value *const *in, uint32_t n_in, uint32_t *out)
{
    int64_t n = xm_op_info(op)->n_out;
    if (op == XM_OP_LINEAR)
        n = attr->linear.glu ? 1 : (n_in - XM_LINEAR_W) / XM_LINEAR_SEGMENT;
    if (op == XM_OP_ROW_CHAIN) {
        struct xm_row_chain chain;
        XM_TRY(xm_row_chain_parse(attr->row_chain.steps, &chain, &g->err));
        n = chain.n_y;
    }
    if (op == XM_OP_SPLIT)
        n = attr->split.n;
    else if (op == XM_OP_VARIADIC_SPLIT)
        n = in[2]->type.shape.rank == 1 && xm_dim_is_const(in[2]->type.shape.dim[0])
                ? in[2]->type.shape.dim[0].n
                : 0;
    if (n < 1 || n > MAX_RESULTS)
        return xm_fail(&g->err, XM_INVALID, "%s must have 1 to %d results, not %lld",
                       xm_op_info(op)->text, MAX_RESULTS, (long long)n);
    *out = (uint32_t)n;
    return XM_OK;
}

static struct xm_node *
allocate_node(struct xm_builder *b, enum xm_op op, uint32_t n_in, uint32_t n_out)
{
    struct xm_graph *g = b->graph;
    struct xm_node *n = xm_arena_alloc(&g->arena, sizeof(*n));
    struct xm_use *in = n_in ? xm_arena_alloc(&g->arena, n_in * sizeof(*in)) : NULL;
    struct xm_value *out = xm_arena_alloc(&g->arena, n_out * sizeof(*out));
    bool share_name = b->before && b->name == b->before->name;
    if (!n || (n_in && !in) || !out || n_out > UINT32_MAX / 2 - g->next_id)
        return fail_memory(g);
    n->name = b->name && *b->name ? b->name : "";
    if (*n->name && !share_name)
        n->name = xm_arena_strdup(&g->arena, b->name);
    if (!n->name)
        return fail_memory(g);
    n->op = op;
    n->n_in = n_in;
    n->n_out = n_out;
    n->in = in;
    n->out = out;
    for (uint32_t i = 0; i < n_out; i++) {
        out[i].node = n;
        out[i].index = i;
    }
    return n;
}

/* Infers the types of the results. n->in is set, but n is not yet in the lists of uses of its
 * operands, so that a failure leaves no trace. */
static enum xm_status
infer_types(struct xm_builder *b, struct xm_node *n, const struct xm_type *declared)
{
    struct xm_graph *g = b->graph;
    if (declared)
        n->out[0].type = *declared;
    if (xm_infer_node(g, n, &g->arena, n->out, &g->err) != XM_OK) {
        xm_error_prefix(&g->err, "%s%s%s%s", xm_op_info(n->op)->text,
                        *n->name ? " '" : "", n->name, *n->name ? "'" : "");
        return g->err.status;
    }
    return XM_OK;
}

/* For an op with named operands: makes operands that were left out at the end absent. */
static void
complete_operands(struct xm_graph *g, enum xm_op op, struct xm_value *const **in,
                  uint32_t *n_in, struct xm_value *all[MAX_NAMED])
{
    const struct xm_op_info *info = xm_op_info(op);
    if (!(info->flags & XM_OPF_NAMED) || *n_in >= (uint32_t)info->max_in)
        return;
    for (uint32_t i = 0; i < (uint32_t)info->max_in; i++)
        all[i] = i < *n_in ? (*in)[i] : xm_none(g);
    *in = all;
    *n_in = (uint32_t)info->max_in;
}

struct xm_node *
xm_node_build_declared(struct xm_builder *b, enum xm_op op, const union xm_attr *attr,
                       struct xm_value *const *in, uint32_t n_in,
                       const struct xm_type *declared)
{
    struct xm_graph *g = b->graph;
    union xm_attr own;
    struct xm_node *n;
    struct xm_value *all[MAX_NAMED];
    uint32_t n_out;
    memset(&own, 0, sizeof(own));
    if (check_arity(g, op, n_in) != XM_OK)
        return NULL;
    complete_operands(g, op, &in, &n_in, all);
    for (uint32_t i = 0; i < n_in; i++)
        if (!in[i])
            return NULL;
    if (complete_attr(g, op, attr, &own) != XM_OK ||
        count_results(g, op, &own, in, n_in, &n_out) != XM_OK)
        return NULL;
    n = allocate_node(b, op, n_in, n_out);
    if (!n)
        return NULL;
    n->attr = own;
    for (uint32_t i = 0; i < n_in; i++)
        n->in[i].value = in[i];
    if (infer_types(b, n, declared) != XM_OK)
        return NULL;
    for (uint32_t i = 0; i < n_in; i++) {
        n->in[i].value = NULL;
        xm_node_set_in(n, i, in[i]);
    }
    n->id = g->next_id;
    g->next_id += n_out;
    xm_node_move_before(g, n, b->before);
    return n;
}

struct xm_node *
xm_node_build(struct xm_builder *b, enum xm_op op, const union xm_attr *attr,
              struct xm_value *const *in, uint32_t n_in)
{
    return xm_node_build_declared(b, op, attr, in, n_in, NULL);
}

static struct xm_value *
first_result(const struct xm_node *n)
{
    return n ? &n->out[0] : NULL;
}

struct xm_value *
xm_op_build(struct xm_builder *b, enum xm_op op, const union xm_attr *attr,
            struct xm_value *const *in, uint32_t n_in)
{
    return first_result(xm_node_build_declared(b, op, attr, in, n_in, NULL));
}

struct xm_value *
xm_op1(struct xm_builder *b, enum xm_op op, struct xm_value *x)
{
    return xm_op_build(b, op, NULL, &x, 1);
}

struct xm_value *
xm_op2(struct xm_builder *b, enum xm_op op, struct xm_value *x, struct xm_value *y)
{
    struct xm_value *in[] = {x, y};
    return xm_op_build(b, op, NULL, in, 2);
}

/* ---- sources and sinks ------------------------------------------------------------- */

struct xm_value *
xm_parameter(struct xm_builder *b, const char *name, const struct xm_type *type)
{
    union xm_attr a = {.parameter = {name, ""}};
    return first_result(xm_node_build_declared(b, XM_OP_PARAMETER, &a, NULL, 0, type));
}

struct xm_value *
xm_result(struct xm_builder *b, const char *name, struct xm_value *x)
{
    union xm_attr a = {.name = {name}};
    return first_result(xm_node_build_declared(b, XM_OP_RESULT, &a, &x, 1, NULL));
}

struct xm_value *
xm_const(struct xm_builder *b, const struct xm_type *type, struct xm_data data)
{
    union xm_attr a = {.data = data};
    return first_result(xm_node_build_declared(b, XM_OP_CONST, &a, NULL, 0, type));
}

struct xm_value *
xm_weight(struct xm_builder *b, const struct xm_weight *w, enum xm_element logical)
{
    union xm_attr a = {.weight = *w};
    struct xm_type type = {.element = logical};
    return first_result(xm_node_build_declared(b, XM_OP_WEIGHT, &a, NULL, 0, &type));
}

struct xm_value *
xm_shape_value(struct xm_builder *b, enum xm_element element, const struct xm_dim *d,
               int n)
{
    union xm_attr a = {.shape_value = {n < 0 ? 1 : (uint32_t)n, d}};
    struct xm_type type = {.element = element, .shape = {.rank = n >= 0}};
    if (n >= 0)
        type.shape.dim[0] = xm_dim_const(n);
    return first_result(xm_node_build_declared(b, XM_OP_SHAPE_VALUE, &a, NULL, 0, &type));
}

struct xm_value *
xm_read_value(struct xm_builder *b, const char *variable, const struct xm_type *type,
              struct xm_value *init)
{
    union xm_attr a = {.name = {variable}};
    if (!init)
        return NULL;
    return first_result(
        xm_node_build_declared(b, XM_OP_READ_VALUE, &a, &init, !xm_is_none(init), type));
}

struct xm_node *
xm_assign(struct xm_builder *b, const char *variable, struct xm_value *x)
{
    union xm_attr a = {.name = {variable}};
    return xm_node_build_declared(b, XM_OP_ASSIGN, &a, &x, 1, NULL);
}

/* ---- frequent ops ------------------------------------------------------------------ */

struct xm_value *
xm_matmul(struct xm_builder *b, struct xm_value *x, struct xm_value *w, bool transpose_a,
          bool transpose_b)
{
    union xm_attr a = {.matmul = {transpose_a, transpose_b}};
    struct xm_value *in[] = {x, w};
    return xm_op_build(b, XM_OP_MATMUL, &a, in, 2);
}

struct xm_value *
xm_convert(struct xm_builder *b, struct xm_value *x, enum xm_element to)
{
    union xm_attr a = {.convert = {to}};
    return xm_op_build(b, XM_OP_CONVERT, &a, &x, 1);
}

struct xm_value *
xm_reshape(struct xm_builder *b, struct xm_value *x, const struct xm_dim *d,
           uint32_t rank)
{
    union xm_attr a = {.reshape = {false}};
    struct xm_value *in[] = {x, x ? xm_shape_value(b, XM_I64, d, (int)rank) : NULL};
    return xm_op_build(b, XM_OP_RESHAPE, &a, in, 2);
}

struct xm_value *
xm_transpose(struct xm_builder *b, struct xm_value *x, const int64_t *order,
             uint32_t rank)
{
    struct xm_value *in[] = {x, x ? xm_const_ints(b, XM_I64, order, (int)rank) : NULL};
    return xm_op_build(b, XM_OP_TRANSPOSE, NULL, in, 2);
}

struct xm_value *
xm_reshape_like(struct xm_builder *b, struct xm_value *x, const struct xm_shape *like)
{
    if (!x || xm_shape_eq(&x->type.shape, like))
        return x;
    return xm_reshape(b, x, like->dim, like->rank);
}
