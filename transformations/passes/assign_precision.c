/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the element type in which a device keeps each activation.
 *
 *     the residual stream                         f32: all layers add to it
 *     results; operands of rotations and routers  f32, as are the results of the light operations
 *                                                   that compute them, back to a product or norm
 *     the norm of a router's product              f32, in a result of its own if others read it
 *     everything else                             the precision of inference
 *
 * Operations whose kernels convert have operands and results of different types. If another
 * operation needs a type that its operand does not have, lowering inserts a conversion. Integers,
 * constants and parameters keep their types.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/passes/residual_stream.h"
#include "transformations/passes/router_product.h"
#include "transformations/pipeline.h"

struct types {
    struct xm_graph *g;
    enum xm_element act; /* precision of inference */
    bool *wanted;        /* by number of a value: some later operation needs it in f32 */
    bool *stream;
};

static uint32_t
number_of(const struct xm_value *v)
{
    return v->node->id + v->index;
}

/* What an op requires of its operands. An op that CONVERTS (ops.def) requires nothing. Of any other
 * op, a result that must be f32 is computed from operands in f32. */
#define IN(i) (1u << (i))
/* clang-format off */
static const struct needs {
    enum xm_op op;
    /* operands that must be f32 whatever type the results have (or integers, which keep their
     * type) */
    uint32_t exact;
    /* operands that must have the type of the results; other operands may have any type and are
     * converted */
    uint32_t alike;
    bool (*applies)(const struct xm_node *n);
} needs[] = {
    { XM_OP_RESULT,        IN(0), 0, NULL },
    { XM_OP_MATMUL,        0, 0, xm_reads_weight },
    { XM_OP_GATHER,        0, 0, xm_reads_weight },
    { XM_OP_LINEAR,        0, IN(XM_LINEAR_ADDEND), NULL },
    { XM_OP_ROPE,          IN(1) | IN(2), 0, NULL },
    { XM_OP_ATTENTION,     IN(XM_ATTENTION_COS) | IN(XM_ATTENTION_SIN),
      IN(XM_ATTENTION_Q) | IN(XM_ATTENTION_K) | IN(XM_ATTENTION_V) | IN(XM_ATTENTION_MASK), NULL },
    { XM_OP_GATHER_MATMUL, IN(2), 0, NULL },
    { XM_OP_MOE_ROUTER,    IN(0), 0, NULL },
    { XM_OP_MOE_3GEMM_FUSED_COMPRESSED, IN(XM_MOE_ROUTING) | IN(XM_MOE_IDS), IN(XM_MOE_ADDEND), NULL },
};
/* clang-format on */

/* The requirements of an op; NULL: a light operation. */
static const struct needs *
needs_of(const struct xm_node *n)
{
    static const struct needs nothing = {.exact = 0};
    if (xm_op_info(n->op)->flags & XM_OPF_CONVERTS)
        return &nothing;
    for (size_t i = 0; i < XM_ARRAY_LEN(needs); i++) {
        if (needs[i].op == n->op && (!needs[i].applies || needs[i].applies(n)))
            return &needs[i];
    }
    return NULL;
}

/* ---- a router's norm --------------------------------------------------------------------- */

/* The norm that computes x, perhaps before reshapes; NULL: x is not normalised. */
static struct xm_value *
norm_of(struct xm_value *x)
{
    while (xm_keeps_rows(x->node))
        x = xm_in(x->node, 0);
    return xm_is_norm(x->node) ? x : NULL;
}

/* Whether x and the norm, and the values between them, each have one reader: the norm is not used
 * elsewhere. */
static bool
is_read_once(const struct xm_value *x, const struct xm_value *norm)
{
    while (x != norm && x->n_uses == 1)
        x = xm_in(x->node, 0);
    return x->n_uses == 1;
}

/* Gets the row chain that computes `norm`: the chain that it is a result of, or a new chain of one
 * step. *step: the step of that result. */
static bool
chain_of(struct xm_builder *b, const struct xm_value *norm, struct xm_row_chain *chain,
         uint32_t *step, struct xm_value **in)
{
    const struct xm_node *n = norm->node;
    uint32_t result = 0;
    if (n->op == XM_OP_ROW_CHAIN) {
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = xm_in(n, i);
        if (xm_row_chain_parse(n->attr.row_chain.steps, chain, NULL) != XM_OK)
            return false;
        for (*step = 0; !chain->step[*step].is_result || result++ < norm->index;)
            ++*step;
        return chain->step[*step].op == XM_CHAIN_RMS_NORM;
    }
    const struct xm_value *gamma = xm_in(n, 1);
    if (gamma->node->op != XM_OP_CONST || !xm_element_readable(gamma->type.element))
        return false;
    *step = 0;
    *chain = (struct xm_row_chain){.n_steps = 1, .n_x = 1, .n_c = 1, .n_y = 1};
    chain->step[0] = (struct xm_chain_step){.op = XM_CHAIN_RMS_NORM,
                                            .a = {XM_CHAIN_X, 0},
                                            .b = {XM_CHAIN_C, 0},
                                            .epsilon = n->attr.rms_norm.epsilon,
                                            .is_result = true};
    in[0] = xm_in(n, 0);
    in[1] = xm_const_flat(b, gamma);
    return in[1] != NULL;
}

/* Adds the norm a second time, as another result of its chain; NULL: the chain has no room for it
 * (or a failure in graph->err). */
static struct xm_value *
second_result(struct xm_graph *g, const struct xm_caps *caps, struct xm_value *norm)
{
    struct xm_node *old = norm->node;
    struct xm_builder b = xm_builder_before(g, old);
    struct xm_value *in[XM_CHAIN_XS + XM_CHAIN_CS];
    struct xm_row_chain chain;
    struct xm_strbuf text = {0};
    uint32_t step;
    b.name = old->name;
    if (!chain_of(&b, norm, &chain, &step, in) || chain.n_y == XM_CHAIN_YS ||
        chain.n_steps == XM_CHAIN_STEPS)
        return NULL;
    chain.step[chain.n_steps++] = chain.step[step];
    chain.n_y++;
    xm_row_chain_print(&chain, &text);
    const union xm_attr attr = {.row_chain = {xm_strbuf_text(&text)}};
    struct xm_node *n = NULL;
    if (!xm_strbuf_ok(&text))
        xm_no_memory(&g->err, "a chain's steps");
    else
        n = xm_fused_build(&b, caps, XM_OP_ROW_CHAIN, &attr, in, chain.n_x + chain.n_c);
    xm_strbuf_free(&text);
    for (uint32_t i = 0; n && i < old->n_out; i++)
        xm_value_replace(g, &old->out[i], &n->out[i]);
    if (n)
        xm_node_remove_dead(g, old);
    return n ? &n->out[n->n_out - 1] : NULL;
}

/* If a router's product shares its norm with other readers, gives it a second result of its own. */
static bool
split_norm(struct xm_graph *g, const struct xm_caps *caps, const struct xm_node *router)
{
    struct xm_node *product = xm_router_product(router);
    struct xm_value *x = product ? xm_in(product, 0) : NULL;
    struct xm_value *norm = x ? norm_of(x) : NULL;
    if (!norm || is_read_once(x, norm))
        return false;
    const struct xm_shape shape = x->type.shape;
    struct xm_value *own = second_result(g, caps, norm);
    struct xm_builder b = xm_builder_before(g, product);
    own = own ? xm_reshape_like(&b, own, &shape) : NULL;
    if (own)
        xm_node_set_in(product, 0, own);
    return own != NULL;
}

/* ---- who needs f32 ----------------------------------------------------------------------- */

static void
want(struct types *t, const struct xm_value *v)
{
    if (!xm_is_none(v))
        t->wanted[number_of(v)] = true;
}

static void
want_operands(struct types *t, const struct xm_node *n)
{
    const struct needs *asks = needs_of(n);
    bool wanted = false, exact = false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        wanted |= t->wanted[n->id + i];
        exact |= t->wanted[n->id + i] || t->stream[n->id + i];
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        const uint32_t bit = i < 32 ? IN(i) : 0;
        if (asks ? (asks->exact & bit) || (exact && (asks->alike & bit)) : wanted)
            want(t, xm_in(n, i));
    }
    for (uint32_t i = 0; i < n->n_out && asks && asks->alike && exact; i++)
        want(t, &n->out[i]);
}

static void
find_wanted(struct types *t)
{
    for (const struct xm_node *n = t->g->last; n; n = n->before) {
        const struct xm_node *product = xm_router_product(n);
        /* values converted from integers (positions) do not fit f16 */
        if (n->op == XM_OP_CONVERT && !xm_element_is_float(xm_in(n, 0)->type.element))
            want(t, &n->out[0]);
        if (n->op == XM_OP_ROPE_TABLES || n->op == XM_OP_MOE_ROUTER)
            want(t, &n->out[0]);
        if (n->op == XM_OP_ROPE_TABLES)
            want(t, &n->out[1]);
        if (product) {
            struct xm_value *x = xm_in(product, 0), *norm = norm_of(x);
            if (norm && is_read_once(x, norm))
                want(t, x);
        }
        want_operands(t, n);
    }
}

/* ---- types ------------------------------------------------------------------------------- */

/* The element type in which the device has v. */
static enum xm_element
element_of(const struct xm_value *v)
{
    const enum xm_element e = xm_value_stored(v);
    return xm_value_is_const(v) || (e != XM_F16 && xm_element_is_float(e)) ? XM_F32 : e;
}

/* Whether an op only moves elements, so that its result has the type of its operand. */
static bool
keeps_type(const struct xm_node *n)
{
    return n->op == XM_OP_ROPE || (xm_op_info(n->op)->flags & XM_OPF_SHAPE_ONLY &&
                                   n->op != XM_OP_CONCAT && !needs_of(n));
}

static bool
assign(const struct types *t, struct xm_value *v)
{
    const enum xm_element type = v->type.element, before = v->stored;
    const uint32_t i = number_of(v);
    enum xm_element e = t->wanted[i] || t->stream[i] ? XM_F32 : t->act;
    if (!xm_element_is_float(type))
        return false;
    if (keeps_type(v->node))
        e = element_of(xm_in(v->node, 0));
    v->stored = e == type ? XM_DYNAMIC : e;
    return v->stored != before;
}

/* Assigns types to all values, except those whose types are declared in files. */
static bool
assign_all(const struct types *t)
{
    bool any = false;
    xm_for_each_node(n, t->g)
    {
        if (n->op == XM_OP_RESULT || n->op == XM_OP_READ_VALUE ||
            xm_op_info(n->op)->flags & XM_OPF_SOURCE)
            continue;
        for (uint32_t i = 0; i < n->n_out; i++)
            any |= assign(t, &n->out[i]);
    }
    return any;
}

bool
xm_pass_assign_precision(struct xm_graph *g, const struct xm_caps *caps)
{
    struct types t = {.g = g, .act = caps ? caps->precision : XM_DYNAMIC};
    bool any = false;
    if (t.act == XM_DYNAMIC)
        return false;
    for (struct xm_node *n = g->first; n && t.act != XM_F32; n = n->next)
        any |= g->err.status == XM_OK && split_norm(g, caps, n);
    if (any)
        xm_graph_sort(g, &g->err);
    t.wanted = xm_calloc((size_t)g->next_id + 1, sizeof(*t.wanted));
    t.stream = xm_calloc((size_t)g->next_id + 1, sizeof(*t.stream));
    if (!t.wanted || !t.stream || !xm_find_residual_stream(g, t.stream)) {
        xm_no_memory(&g->err, "the types of a graph");
    } else if (g->err.status == XM_OK) {
        find_wanted(&t);
        any |= assign_all(&t);
    }
    xm_free(t.wanted);
    xm_free(t.stream);
    return any;
}
