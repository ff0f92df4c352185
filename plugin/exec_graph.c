/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/exec_graph.h"

#include <string.h>

void
xm_exec_graph_free(struct xm_exec_graph *g)
{
    xm_arena_free(&g->arena);
    *g = (struct xm_exec_graph){0};
}

/* ---- names --------------------------------------------------------------------------- */

/* Layer types of operations that exist only in graphs, not in files. */
static const struct {
    enum xm_op op;
    const char *type;
} made[] = {
    {XM_OP_WEIGHT, "Const"},
    {XM_OP_SHAPE_VALUE, "Const"},
    {XM_OP_RMS_NORM, "RMS"},
    {XM_OP_ROUND_BF16, "Convert"},
    {XM_OP_ROPE, "RoPE"},
    {XM_OP_ROPE_TABLES, "RoPETables"},
    {XM_OP_ALL_REDUCE, "AllReduce"},
    {XM_OP_ALL_GATHER, "AllGather"},
    {XM_OP_SEND, "Send"},
    {XM_OP_RECEIVE, "Receive"},
    {XM_OP_GLU, "SwiGLU"},
    {XM_OP_ATTENTION, "PagedAttention"},
    {XM_OP_LINEAR, "FullyConnected"},
    {XM_OP_GATHER_MATMUL, "GatherMatmulCompressed"},
    {XM_OP_MOE, "MOE"},
    {XM_OP_MOE_COMPRESSED, "MOECompressed"},
    {XM_OP_MOE_ROUTER, "MoERouterFused"},
    {XM_OP_MOE_3GEMM_FUSED_COMPRESSED, "MOE3GemmFusedCompressed"},
};

/* Returns the layer type of a row chain: RMS if it has a norm. */
static const char *
type_of_chain(const struct xm_node *n)
{
    return n && strstr(n->attr.row_chain.steps, "rms_norm") ? "RMS" : "Eltwise";
}

static bool
is_constant(const struct xm_node *n)
{
    return n->op == XM_OP_CONST || n->op == XM_OP_WEIGHT || n->op == XM_OP_SHAPE_VALUE ||
           n->op == XM_OP_NONE;
}

const char *
xm_layer_type(const char *text, const struct xm_node *n)
{
    const enum xm_op op = xm_op_by_text(text);
    if (op == XM_OP_MATMUL && n && is_constant(xm_in(n, 1)->node))
        return "FullyConnected";
    if (op == XM_OP_ROW_CHAIN)
        return type_of_chain(n);
    for (size_t i = 0; i < XM_ARRAY_LEN(made); i++) {
        if (made[i].op == op)
            return made[i].type;
    }
    const char *type = op < XM_OP_COUNT ? xm_op_info(op)->ir_type : NULL;
    return type ? type : "Reference";
}

/* ---- origins ------------------------------------------------------------------------- */

/* Searches linearly, because lists are short: a fused layer of experts has about forty names. */
static void
add_name(const char *name, struct xm_strbuf *list)
{
    if (name[0] && !xm_list_has(xm_strbuf_text(list), ',', name, strlen(name)))
        xm_strbuf_printf(list, "%s%s", list->n ? "," : "", name);
}

/* Adds the names of `n` and of the nodes that it replaced. A replacement has the name of the node
 * that it replaced. Constants are not layers, but the nodes that they were folded from are. */
static void
add_origins(const struct xm_node *n, struct xm_strbuf *list)
{
    if (!is_constant(n))
        add_name(n->name, list);
    for (const struct xm_origin *o = n->origins; o; o = o->next)
        add_origins(o->node, list);
}

void
xm_layer_origins(const struct xm_node *n, struct xm_strbuf *list)
{
    add_origins(n, list);
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (is_constant(xm_in(n, i)->node))
            add_origins(xm_in(n, i)->node, list);
    }
}

/* ---- execution graphs of evaluated graphs -------------------------------------------- */

struct xm_exec_port
xm_exec_port_of(enum xm_element element, const struct xm_shape *s)
{
    struct xm_exec_port port = {.element = element, .rank = s->rank};
    for (uint32_t i = 0; i < s->rank; i++)
        port.dim[i] = xm_dim_is_const(s->dim[i]) ? s->dim[i].n : -1;
    return port;
}

struct builder {
    const struct xm_graph *g;
    struct xm_exec_graph *out;
    uint32_t *place; /* the execution graph's index of each node, by node id */
    const char *kernel;
};

static bool
copy_text(struct xm_exec_graph *g, const char *text, const char **out)
{
    *out = xm_arena_strdup(&g->arena, text);
    return *out != NULL;
}

static bool
add_layers(struct xm_exec_graph *g, const struct xm_node *from, struct xm_exec_node *n)
{
    struct xm_strbuf list = {0};
    xm_layer_origins(from, &list);
    const bool good =
        xm_strbuf_ok(&list) && copy_text(g, xm_strbuf_text(&list), &n->layers);
    xm_strbuf_free(&list);
    return good;
}

static bool
add_ports(struct builder *b, const struct xm_node *from, struct xm_exec_node *n)
{
    struct xm_arena *arena = &b->out->arena;
    struct xm_exec_edge *in = xm_arena_alloc(arena, (from->n_in + 1) * sizeof(*in));
    struct xm_exec_port *out = xm_arena_alloc(arena, (from->n_out + 1) * sizeof(*out));
    for (uint32_t i = 0; in && i < from->n_in; i++) {
        const struct xm_value *v = xm_in(from, i);
        if (!is_constant(v->node))
            in[n->n_in++] = (struct xm_exec_edge){b->place[v->node->id], v->index};
    }
    for (uint32_t i = 0; out && from->op != XM_OP_RESULT && i < from->n_out; i++) {
        const struct xm_type *t = &from->out[i].type;
        out[n->n_out++] = xm_exec_port_of(t->element, &t->shape);
    }
    n->in = in;
    n->out = out;
    return in && out;
}

/* Returns the type that the evaluator computes in: f32, or the integer type of the result. */
static const char *
precision_of(const struct xm_node *n)
{
    const enum xm_element e = n->n_out ? n->out[0].type.element : XM_DYNAMIC;
    return xm_element_text(xm_element_is_float(e) ? XM_F32 : e);
}

static bool
add_node(struct builder *b, const struct xm_node *from)
{
    struct xm_exec_graph *g = b->out;
    struct xm_exec_node *n = &g->nodes[g->n];
    const bool is_input = from->op == XM_OP_PARAMETER,
               is_output = from->op == XM_OP_RESULT;
    const char *text = xm_op_info(from->op)->text;
    *n = (struct xm_exec_node){.type = is_input    ? "Input"
                                       : is_output ? "Output"
                                                   : xm_layer_type(text, from),
                               .kernels = is_input || is_output ? "" : b->kernel,
                               .precision = precision_of(from),
                               .on_host = true};
    b->place[from->id] = g->n++;
    g->n_steps += !is_input && !is_output;
    return copy_text(g, from->name, &n->name) && add_layers(g, from, n) &&
           add_ports(b, from, n);
}

enum xm_status
xm_exec_graph_from(const struct xm_graph *g, const char *kernel,
                   struct xm_exec_graph *out, struct xm_error *err)
{
    *out = (struct xm_exec_graph){0};
    struct builder b = {.g = g, .out = out, .kernel = kernel};
    b.place = xm_calloc(g->next_id + 1, sizeof(*b.place));
    out->nodes = xm_arena_alloc(&out->arena, (g->n_nodes + 1) * sizeof(*out->nodes));
    bool good = b.place && out->nodes;
    for (const struct xm_node *n = g->first; n && good; n = n->next) {
        if (!is_constant(n))
            good = add_node(&b, n);
    }
    xm_free(b.place);
    return good ? XM_OK : xm_no_memory(err, "an execution graph");
}
