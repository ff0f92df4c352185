/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering: the rewritten graph becomes steps and values, in order.
 *
 * The pass assign_precision has set the element types that values have on the device. Lowering
 * adds conversions where an operation needs another type than its operand has. An operation that no
 * kernel can run becomes a host step, which is slow. The log says once that there are such steps.
 */
#include "plugin/lower/lower.h"

#include <assert.h>
#include <string.h>

#include "plugin/lower/expert_caches.h"
#include "runtime/util/log.h"
#include "transformations/graph/symbols.h"
#include "transformations/passes/slice_last_token.h"

static enum xm_status
reserve_step(struct xm_lower *l)
{
    struct xm_program *p = l->p;
    struct xm_step *steps =
        xm_grow(p->steps, &l->steps_capacity, p->n_steps + 1, sizeof(*steps));
    if (!steps)
        return xm_no_memory(l->err, "a program's steps");
    p->steps = steps;
    return XM_OK;
}

/* Sets the operands of step s to a copy of `operands`, and s->in and s->out to the values of those
 * that are present. */
static enum xm_status
set_operands(struct xm_lower *l, struct xm_step *s,
             const struct xm_step_operand *operands, uint32_t n)
{
    struct xm_program *p = l->p;
    struct xm_step_operand *list = xm_arena_alloc(&p->arena, n * sizeof(*list));
    uint32_t *in = xm_arena_alloc(&p->arena, 2 * n * sizeof(*in)),
             *out = in ? in + n : in;
    if (!list || !in)
        return xm_no_memory(l->err, "a step");
    for (uint32_t i = 0; i < n; i++) {
        const struct xm_step_operand *o = &operands[i];
        list[i] = *o;
        if (o->value == XM_NO_VALUE)
            continue;
        assert(o->role & XM_ROLE_IN_OUT);
        if (o->role & XM_ROLE_IN)
            in[s->n_in++] = o->value;
        if (o->role & XM_ROLE_OUT)
            out[s->n_out++] = o->value;
        if (o->role == (XM_ROLE_OUT | XM_ROLE_FORM))
            p->values[o->value].is_form = true;
    }
    s->operand = list;
    s->n_operands = n;
    s->in = in;
    s->out = out;
    return XM_OK;
}

/* Adds a step with these operands, whose roles are set. Destroys `primitive` on failure. */
static enum xm_status
add_step(struct xm_lower *l, struct xm_node *n, enum xm_step_kind kind,
         struct xm_primitive *primitive, const struct xm_step_operand *operands,
         uint32_t n_operands, struct xm_step **out)
{
    struct xm_program *p = l->p;
    struct xm_step s = {.id = p->n_steps,
                        .kind = kind,
                        .name = xm_arena_strdup(&p->arena, n ? n->name : ""),
                        .op = n ? xm_op_info(n->op)->text : "convert",
                        .primitive = primitive,
                        .node = n};
    enum xm_status status = s.name ? reserve_step(l) : xm_no_memory(l->err, "a step");
    if (status == XM_OK)
        status = set_operands(l, &s, operands, n_operands);
    if (status != XM_OK) {
        xm_primitive_destroy(primitive);
        return status;
    }
    p->steps[p->n_steps++] = s;
    if (out)
        *out = &p->steps[s.id];
    return XM_OK;
}

enum xm_status
xm_lower_step(struct xm_lower *l, struct xm_node *n, enum xm_step_kind kind,
              struct xm_primitive *primitive, struct xm_step_operand *operands,
              struct xm_step **out)
{
    const struct xm_primitive_ops *ops = primitive->ops;
    assert(ops->n_operands <= XM_STEP_OPERANDS);
    for (uint32_t i = 0; i < ops->n_operands; i++)
        operands[i].role = ops->roles[i];
    return add_step(l, n, kind, primitive, operands, ops->n_operands, out);
}

enum xm_status
xm_lower_list_step(struct xm_lower *l, struct xm_node *n, enum xm_step_kind kind,
                   struct xm_primitive *primitive, struct xm_step_operand *operands,
                   uint32_t n_in, uint32_t n_out, struct xm_step **out)
{
    for (uint32_t i = 0; i < n_in + n_out; i++)
        operands[i].role = i < n_in ? XM_ROLE_IN : XM_ROLE_OUT;
    return add_step(l, n, kind, primitive, operands, n_in + n_out, out);
}

static enum xm_status
number_results(struct xm_lower *l)
{
    uint32_t results = 0;
    l->first_result = xm_calloc(l->g->next_id + 1, sizeof(*l->first_result));
    if (!l->first_result)
        return xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
    xm_for_each_node(n, l->g)
    {
        l->first_result[n->id] = results;
        results += n->n_out;
    }
    l->first_value = xm_malloc(results * sizeof(*l->first_value));
    if (!l->first_value)
        return xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
    for (uint32_t i = 0; i < results; i++)
        l->first_value[i] = XM_NO_VALUE;
    return XM_OK;
}

/* ---- ports ---------------------------------------------------------------------- */

static enum xm_status
make_ports(struct xm_lower *l)
{
    struct xm_program *p = l->p;
    XM_TRY(xm_ports_from_graph(l->g, &p->arena, &p->dims, &p->ports, l->err));
    p->input_values =
        xm_arena_alloc(&p->arena, (p->ports.n_inputs + 1) * sizeof(uint32_t));
    p->output_values =
        xm_arena_alloc(&p->arena, (p->ports.n_outputs + 1) * sizeof(uint32_t));
    return p->input_values && p->output_values
               ? XM_OK
               : xm_no_memory(l->err, "a program's ports");
}

static enum xm_status
lower_parameter(struct xm_lower *l, struct xm_node *n)
{
    uint32_t id = XM_NO_VALUE;
    struct xm_value *v = &n->out[0];
    XM_TRY(
        xm_lower_new_value(l, v, v->type.element, &v->type.shape, XM_PLACE_INPUT, &id));
    l->first_value[l->first_result[n->id]] = id;
    l->p->input_values[l->inputs++] = id;
    return XM_OK;
}

static enum xm_status
lower_result(struct xm_lower *l, struct xm_node *n)
{
    uint32_t id = XM_NO_VALUE;
    struct xm_value *v = xm_in(n, 0);
    enum xm_element e = v->type.element;
    if (e == XM_F64 || e == XM_BF16)
        e = XM_F32;
    enum xm_status s = xm_lower_value_as(l, v, e, &id);
    if (s == XM_UNSUPPORTED)
        return xm_fail(l->err, s, "a result of %s cannot be read from the device",
                       xm_element_text(v->type.element));
    XM_TRY(s);
    struct xm_program_value *root = &l->p->values[xm_program_root(l->p, id)];
    if (root->place == XM_PLACE_ACTIVATION)
        root->place = XM_PLACE_OUTPUT;
    l->p->ports.outputs[l->outputs].type.element = e;
    l->p->output_values[l->outputs++] = id;
    return XM_OK;
}

static enum xm_status
lower_shape_value(struct xm_lower *l, struct xm_node *n)
{
    uint32_t id = XM_NO_VALUE;
    struct xm_value *v = &n->out[0];
    XM_TRY(
        xm_lower_new_value(l, v, v->type.element, &v->type.shape, XM_PLACE_SHAPE, &id));
    const struct xm_content *c = &n->attr.shape_value;
    struct xm_dim *dims = xm_arena_alloc(&l->p->arena, c->n * sizeof(*dims));
    if (!dims)
        return xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
    for (uint32_t i = 0; i < c->n; i++)
        dims[i] = xm_dim_import(&l->p->dims, c->e[i]);
    l->p->values[id].dims = dims;
    l->p->values[id].n_dims = c->n;
    l->first_value[l->first_result[n->id]] = id;
    return XM_OK;
}

enum xm_status
xm_lower_finish(struct xm_lower *l, struct xm_node *n, struct xm_primitive *primitive,
                struct xm_step_operand *operands, const struct xm_step_cost *cost)
{
    struct xm_step *step = NULL;
    XM_TRY(xm_lower_step(l, n, XM_STEP_PRIMITIVE, primitive, operands, &step));
    if (cost)
        step->cost = *cost;
    return XM_OK;
}

void
xm_lower_add_cost(struct xm_step_cost *cost, const struct xm_weight *w, uint64_t times,
                  uint64_t of)
{
    const uint64_t bytes = xm_weight_bytes(w) * times / of;
    cost->bytes += bytes;
    cost->expert_bytes += w->experts > 1 ? bytes : 0;
    cost->all_expert_bytes += w->experts > 1 ? xm_weight_bytes(w) : 0;
    cost->multiply_adds += w->experts * w->rows * w->cols * times / of;
}

static const struct xm_lower_op *
row_in(const struct xm_lower_op *rows, enum xm_op op)
{
    while (rows->op != XM_OP_NONE && rows->op != op)
        rows++;
    return rows->op == op ? rows : NULL;
}

const struct xm_lower_op *
xm_lower_op(enum xm_op op)
{
    static const struct xm_lower_op *const tables[] = {
        xm_lower_product_ops, xm_lower_row_ops, xm_lower_attention_ops,
        xm_lower_expert_ops, xm_lower_light_ops};
    const struct xm_lower_op *row = NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(tables) && !row; i++)
        row = row_in(tables[i], op);
    return row;
}

static enum xm_status
lower_node(struct xm_lower *l, struct xm_node *n)
{
    switch (n->op) {
    case XM_OP_NONE:
    case XM_OP_CONST:
    case XM_OP_WEIGHT:
        return XM_OK; /* constants are lowered on first use */
    case XM_OP_PARAMETER:
        return lower_parameter(l, n);
    case XM_OP_RESULT:
        return lower_result(l, n);
    case XM_OP_SHAPE_VALUE:
        return lower_shape_value(l, n);
    case XM_OP_MOE:
    case XM_OP_MOE_COMPRESSED:
        return xm_fail(l->err, XM_UNSUPPORTED,
                       "%s '%s' cannot run: neither FuseMOE3GemmCompressed nor "
                       "LowerUnfusedMoE has replaced it",
                       xm_op_info(n->op)->text, n->name);
    default:
        break;
    }
    const struct xm_lower_op *row = xm_lower_op(n->op);
    const bool is_eltwise = xm_op_info(n->op)->flags & XM_OPF_ELTWISE;
    xm_lower_fn fn = row ? row->lower : is_eltwise ? xm_lower_eltwise : NULL;
    if (xm_lower_is_in_region(l, n))
        fn = xm_lower_region;
    enum xm_status s = fn ? fn(l, n) : XM_UNSUPPORTED;
    if (s == XM_UNSUPPORTED && l->err->status == XM_OK)
        s = xm_lower_to_host(l, n);
    if (s != XM_OK)
        xm_error_prefix(l->err, "%s '%s'", xm_op_info(n->op)->text, n->name);
    return s;
}

/* ---- lifetimes ------------------------------------------------------------------ */

static enum xm_status
touch(struct xm_program *p, uint32_t id, uint32_t step, bool writes, struct xm_error *err)
{
    struct xm_program_value *v = &p->values[xm_program_root(p, id)];
    const bool is_made = v->place == XM_PLACE_ACTIVATION || v->place == XM_PLACE_OUTPUT;
    if (writes && !is_made)
        return xm_fail(err, XM_INVALID,
                       "step %u would write value %u, which is an input or a constant",
                       step, id);
    if (!writes && is_made && v->first == UINT32_MAX)
        return xm_fail(err, XM_INVALID,
                       "step %u would read value %u, which no earlier step writes", step,
                       id);
    if (v->first == UINT32_MAX)
        v->first = step;
    v->last = step;
    return XM_OK;
}

static enum xm_status
find_lifetimes(struct xm_program *p, struct xm_error *err)
{
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const struct xm_step *step = &p->steps[s];
        for (uint32_t i = 0; i < step->n_in; i++)
            XM_TRY(touch(p, step->in[i], s, false, err));
        for (uint32_t i = 0; i < step->n_out; i++)
            XM_TRY(touch(p, step->out[i], s, true, err));
    }
    for (uint32_t i = 0; i < p->ports.n_outputs; i++)
        XM_TRY(touch(p, p->output_values[i], p->n_steps, false, err)); /* by the host */
    return XM_OK;
}

/* ---- cutting prompts ------------------------------------------------------------ */

static uint32_t
token_axes(const struct xm_shape *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->rank; i++)
        n += xm_dim_has_symbol(s->dim[i], XM_SYMBOL_TOKENS);
    return n;
}

/* Returns whether a port's tensor can be cut into the parts of chunks. At most one axis may depend
 * on `tokens`; its size must be `tokens` (of an input also past + tokens). Elements of less than a
 * byte cannot be cut. */
static bool
can_cut_port(struct xm_program *p, const struct xm_port *port, bool is_input)
{
    const struct xm_shape *s = &port->type.shape;
    struct xm_dim tokens = xm_dim_symbol(&p->dims, XM_SYMBOL_TOKENS);
    struct xm_dim context =
        xm_dim_add(&p->dims, xm_dim_symbol(&p->dims, XM_SYMBOL_PAST), tokens);
    if (xm_element_bits(port->type.element) < 8)
        return false;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (xm_dim_has_symbol(s->dim[i], XM_SYMBOL_TOKENS) &&
            !xm_dim_eq(s->dim[i], tokens) && !(is_input && xm_dim_eq(s->dim[i], context)))
            return false;
    }
    return token_axes(s) <= 1;
}

/* Returns whether n is the gather of the rows whose logits are wanted. */
static bool
chooses_rows(const struct xm_node *n)
{
    return n->op == XM_OP_GATHER && xm_in(n, 1)->node->op == XM_OP_PARAMETER &&
           strcmp(xm_in(n, 1)->node->name, XM_SAMPLED_TOKENS) == 0;
}

/* Returns whether a row of a node's result may depend on several tokens. An operation with a token
 * axis in its operands and none in its result, such as a mean, combines all tokens. Slices and
 * gathers of rows only choose tokens. The result of a send is a number that no node reads. */
static bool
joins_tokens(const struct xm_node *n)
{
    if (n->op == XM_OP_ATTENTION)
        return !n->attr.attention.causal || !xm_is_none(xm_in(n, XM_ATTENTION_MASK));
    bool had = false, has = n->n_out == 0 || n->op == XM_OP_SLICE ||
                            n->op == XM_OP_SEND || chooses_rows(n);
    for (uint32_t i = 0; i < n->n_in; i++)
        had |= token_axes(&xm_in(n, i)->type.shape) > 0;
    for (uint32_t i = 0; i < n->n_out; i++)
        has |= token_axes(&n->out[i].type.shape) > 0;
    return had && !has;
}

/* Returns whether prompts can be cut into chunks: only causal attention combines tokens, by the KV
 * cache, and inputs and outputs can be cut. */
static bool
are_tokens_apart(struct xm_program *p, const struct xm_graph *g)
{
    if ((p->n_kv == 0 && !g->counts_positions) || p->n_host_steps > 0)
        return false;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        if (!can_cut_port(p, &p->ports.inputs[i], true))
            return false;
    }
    for (uint32_t i = 0; i < p->ports.n_outputs; i++) {
        if (!can_cut_port(p, &p->ports.outputs[i], false))
            return false;
    }
    xm_for_each_node(n, g)
    {
        if (joins_tokens(n))
            return false;
    }
    return true;
}

static uint32_t
find_chosen_rows(const struct xm_program *p)
{
    const uint32_t port =
        xm_port_find(p->ports.inputs, p->ports.n_inputs, XM_SAMPLED_TOKENS);
    return port == UINT32_MAX ? XM_NO_VALUE : p->input_values[port];
}

static bool
takes_last_token(const struct xm_node *n)
{
    return n->op == XM_OP_SLICE && token_axes(&xm_in(n, 0)->type.shape) > 0 &&
           token_axes(&n->out[0].type.shape) == 0;
}

/* Returns whether a value that a step uses depends on the number of positions before the run, in
 * its shape or in the integers that it holds. */
static bool
depends_on_past(const struct xm_program_value *v)
{
    bool depends = false;
    for (uint32_t i = 0; i < v->shape.rank; i++)
        depends |= xm_dim_has_symbol(v->shape.dim[i], XM_SYMBOL_PAST);
    for (uint32_t i = 0; i < v->n_dims; i++)
        depends |= xm_dim_has_symbol(v->dims[i], XM_SYMBOL_PAST);
    return depends && v->first != UINT32_MAX;
}

/* Returns whether tokens of sequences of different lengths may be concatenated along `tokens`. For
 * a program whose prompts can be cut this is so if only attention depends on `past`, and no step
 * takes the last token only. The key mask, which depends on `past`, is no obstacle: it hides
 * padding, and such runs have none. */
static bool
may_mix(const struct xm_program *p, const struct xm_graph *g)
{
    uint32_t key_mask = XM_NO_VALUE;
    for (uint32_t i = 0; i < p->ports.n_inputs && p->key_mask; i++) {
        if (strcmp(p->ports.inputs[i].name, p->key_mask) == 0)
            key_mask = p->input_values[i];
    }
    for (uint32_t i = 0; i < p->n_values; i++) {
        if (i != key_mask && depends_on_past(&p->values[i]))
            return false;
    }
    xm_for_each_node(n, g)
    {
        if (takes_last_token(n))
            return false;
    }
    return true;
}

/* Points each alias at its root, so that runs follow no chains. */
static void
shorten_aliases(struct xm_program *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        if (p->values[i].place == XM_PLACE_ALIAS)
            p->values[i].alias = xm_program_root(p, i);
    }
}

/* Returns xm_step.is_steady: false for steps that depend on `past`, attention, host steps and
 * collectives, and for the step that gathers the chosen rows: if these are contiguous, a copy
 * replaces its launch (request_run.c). */
static bool
is_steady(const struct xm_program *p, const struct xm_step *s)
{
    bool depends = s->kind == XM_STEP_ATTENTION || s->kind == XM_STEP_HOST ||
                   s->kind == XM_STEP_COLLECTIVE;
    for (uint32_t i = 0; i < s->n_operands && !depends; i++) {
        const uint32_t value = s->operand[i].value;
        depends = value != XM_NO_VALUE &&
                  (depends_on_past(&p->values[value]) || value == p->chosen_rows);
    }
    return !depends;
}

enum xm_status
xm_lower(struct xm_program *p, struct xm_graph *g, struct xm_error *err)
{
    struct xm_error cause = {0}; /* lower_node tests whether it has a message */
    struct xm_lower l = {.p = p, .g = g, .err = &cause};
    enum xm_status s = number_results(&l);
    if (s == XM_OK)
        s = make_ports(&l);
    if (s == XM_OK)
        s = xm_lower_find_regions(&l);
    for (struct xm_node *n = g->first; n && s == XM_OK; n = n->next)
        s = lower_node(&l, n);
    if (s == XM_OK)
        p->is_ragged = are_tokens_apart(p, g);
    if (s == XM_OK && p->dims.failed)
        s = xm_no_memory(&cause, "a program's dimensions");
    if (s == XM_OK)
        s = find_lifetimes(p, &cause);
    if (s == XM_OK) {
        p->can_chunk = p->is_ragged;
        p->chosen_rows = find_chosen_rows(p);
        p->is_ragged = p->is_ragged && may_mix(p, g);
        shorten_aliases(p);
        for (uint32_t i = 0; i < p->n_steps; i++)
            p->steps[i].is_steady = is_steady(p, &p->steps[i]);
        if (p->n_host_steps && !xm_engine_only_counts(p->engine))
            xm_log(XM_LOG_INFO,
                   "%u operations have no kernel and run on the host (slow); "
                   "XM_DEBUG=dispatch names them",
                   p->n_host_steps);
    }
    if (s == XM_OK)
        s = xm_expert_caches_create(p, &cause);
    if (s == XM_OK)
        s = xm_program_create_kv_pool(p, g->counts_positions, &cause);
    xm_queue_destroy(l.queue);
    xm_free(l.first_result);
    xm_free(l.first_value);
    xm_lower_free_regions(&l);
    return s == XM_OK ? s : xm_fail(err, s, "%s", cause.text);
}
