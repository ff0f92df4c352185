/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner of `evaluate`: marks the nodes that are needed, binds symbols, runs node after
 * node.
 *
 * Types are not derived here: each op's shape function runs on the concrete operands, and
 * the op's reference fills results of those types. A node's tensors are freed after their
 * last use. States are read as they were before the run; what the run writes is kept
 * apart and committed when all nodes have run, so that a failed run changes nothing.
 */
#include "transformations/graph/evaluate.h"

#include <inttypes.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"
#include "transformations/graph/infer.h"

static const struct {
    xm_eval_fn run;
    const char *classes; /* classes of the operands */
} references[XM_OP_COUNT] = {
#define OP(id, text, ir, opsets, min, max, out, flags, algebra, shape, eval, classes)    \
    [XM_OP_##id] = {xm_eval_##eval, classes},
#include "transformations/graph/ops.def"
};

/* The state of a node in a run; found by the node's id. */
struct slot {
    struct xm_tensor **out; /* n_out; NULL: not computed */
    uint32_t n_out;
    uint32_t uses_left;
    bool needed;
};

struct run {
    const struct xm_eval *e;
    struct slot *slots; /* [next_id] */
    struct xm_binding *bindings;
    uint32_t n_bindings;
    struct xm_state_store *states, *own_states, *pending;
    struct xm_error *err;
};

/* ---- sources and states --------------------------------------------------------- */

/* The reference of ops that are not computed: the runner sets parameters, and absent operands have
 * no value. */
enum xm_status
xm_eval_none(struct xm_eval_call *c)
{
    return xm_fail(c->err, XM_INVALID,
                   "the operation is not computed, so it has no value");
}

/* The shape function has checked that bytes and type agree. */
enum xm_status
xm_eval_const(struct xm_eval_call *c)
{
    if (!xm_element_readable(c->out[0]->element))
        return xm_fail(c->err, XM_UNSUPPORTED, "elements of type %s cannot be read",
                       xm_element_text(c->out[0]->element));
    xm_tensor_fill(c->out[0], c->node->attr.data.bytes);
    return XM_OK;
}

enum xm_status
xm_eval_shape_value(struct xm_eval_call *c)
{
    const struct xm_content *v = &c->node->attr.shape_value;
    struct xm_tensor *out = c->out[0];
    for (uint32_t i = 0; i < v->n; i++)
        XM_TRY(xm_dim_eval(v->e[i], c->bindings, c->n_bindings, &out->i[i], c->err));
    return XM_OK;
}

/* Returns the state; if it has not been written, the initial value; if there is none, zeros of the
 * declared type, in which symbolic dimensions are 0. */
enum xm_status
xm_eval_read_value(struct xm_eval_call *c)
{
    const struct xm_tensor *state = xm_state_get(c->states, c->node->attr.name.name);
    const struct xm_type *type = &c->node->out[0].type;
    const struct xm_tensor *init = c->node->n_in > 0 ? c->in[0] : NULL;
    int64_t dim[XM_MAX_RANK];
    xm_tensor_destroy(c->out[0]);
    c->out[0] = NULL;
    if (state || init)
        return xm_tensor_copy(&c->out[0], state ? state : init, c->err);
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        if (xm_dim_eval(type->shape.dim[i], c->bindings, c->n_bindings, &dim[i], NULL) !=
            XM_OK)
            dim[i] = 0;
    }
    return xm_tensor_create(&c->out[0], type->element, type->shape.rank, dim, c->err);
}

enum xm_status
xm_eval_assign(struct xm_eval_call *c)
{
    XM_TRY(xm_eval_copy(c));
    return xm_state_set(c->pending, c->node->attr.name.name, c->out[0], c->err);
}

/* ---- one node ------------------------------------------------------------------- */

/* The arguments of a shape function, for concrete operands. */
struct concrete {
    struct xm_arena arena;
    struct xm_dim_pool dims;
    struct xm_infer infer;
};

/* Sets *content to the elements of a small integer tensor. */
static bool
content_of(struct xm_arena *arena, const struct xm_tensor *t, struct xm_content *content)
{
    if (!t->i || t->element == XM_BOOL || t->rank > 1 || t->n > XM_MAX_CONTENT)
        return true;
    struct xm_dim *e = xm_arena_alloc(arena, (t->n ? t->n : 1) * sizeof(*e));
    for (uint64_t i = 0; e && i < t->n; i++)
        e[i] = xm_dim_const(t->i[i]);
    content->n = (uint32_t)t->n;
    content->e = e;
    return e != NULL;
}

/* Makes *out describe operand i: the type of the tensor or, for a weight that is not decoded, the
 * type in the graph. */
static enum xm_status
describe_operand(struct xm_arena *arena, const struct xm_eval_call *c, uint32_t i,
                 struct xm_value *out)
{
    const struct xm_tensor *t = c->in[i];
    *out = *xm_in(c->node, i);
    if (!t)
        return XM_OK;
    out->type = (struct xm_type){.element = t->element, .shape = {.rank = t->rank}};
    out->content = (struct xm_content){0};
    for (uint32_t d = 0; d < t->rank; d++)
        out->type.shape.dim[d] = xm_dim_const(t->dim[d]);
    return content_of(arena, t, &out->content) ? XM_OK : xm_eval_no_memory(c->err);
}

/* Runs the shape function; its result types are in d->infer.out. */
static enum xm_status
infer_types(const struct xm_eval_call *c, struct concrete *d)
{
    const struct xm_node *n = c->node;
    struct xm_arena *a = &d->arena;
    struct xm_value *values = xm_arena_alloc(a, n->n_in * sizeof(*values));
    struct xm_use *in = xm_arena_alloc(a, n->n_in * sizeof(*in));
    struct xm_value *out = xm_arena_alloc(a, n->n_out * sizeof(*out));
    if (!values || !in || !out)
        return xm_eval_no_memory(c->err);
    for (uint32_t i = 0; i < n->n_in; i++) {
        XM_TRY(describe_operand(a, c, i, &values[i]));
        in[i].value = &values[i];
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i].type = n->out[i].type;
    d->infer = (struct xm_infer){n->op, &n->attr, n->n_in, n->n_out, in,
                                 out,   &d->dims, a,       c->err};
    return xm_infer_run(&d->infer);
}

/* Creates result i if its type is known. Some references determine the size themselves: range, if
 * that takes floats; read_value; non_zero. */
static enum xm_status
create_result(struct xm_eval_call *c, const struct xm_type *type, uint32_t i)
{
    int64_t dim[XM_MAX_RANK];
    if (!xm_shape_is_static(&type->shape)) {
        bool finds_its_own = c->node->op == XM_OP_RANGE ||
                             c->node->op == XM_OP_READ_VALUE ||
                             c->node->op == XM_OP_NON_ZERO;
        return finds_its_own
                   ? XM_OK
                   : xm_fail(c->err, XM_INVALID,
                             "the type of result %u does not follow from its operands",
                             i);
    }
    for (uint32_t k = 0; k < type->shape.rank; k++)
        dim[k] = type->shape.dim[k].n;
    return xm_tensor_create(&c->out[i], type->element, type->shape.rank, dim, c->err);
}

static enum xm_status
compute(struct xm_eval_call *c)
{
    struct concrete d = {.arena = {0}};
    enum xm_status status = infer_types(c, &d);
    for (uint32_t i = 0; status == XM_OK && i < c->node->n_out; i++)
        status = create_result(c, &d.infer.out[i].type, i);
    if (status == XM_OK && d.dims.failed)
        status = xm_eval_no_memory(c->err);
    c->infer = &d.infer;
    if (status == XM_OK)
        status = xm_eval_operands(c, references[c->node->op].classes);
    if (status == XM_OK)
        status = references[c->node->op].run(c);
    xm_arena_free(&d.arena);
    xm_dim_pool_free(&d.dims);
    return status;
}

static void
destroy_results(struct xm_tensor **out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        xm_tensor_destroy(out[i]);
        out[i] = NULL;
    }
}

/* Computes one node. On failure no results are left, and the message names the node. */
static enum xm_status
compute_node(struct xm_eval_call *c)
{
    const struct xm_node *n = c->node;
    enum xm_status status = compute(c);
    if (status == XM_OK)
        return XM_OK;
    if (c->err && c->err->status == XM_OK)
        xm_fail(c->err, status, "%s", xm_status_text(status));
    xm_error_prefix(c->err, "%%%u %s '%s'", n->id, xm_op_info(n->op)->text, n->name);
    destroy_results(c->out, n->n_out);
    return status;
}

enum xm_status
xm_evaluate_node(const struct xm_node *n, const struct xm_tensor *const *in,
                 struct xm_tensor **out, struct xm_state_store *states,
                 const struct xm_binding *bindings, uint32_t n_bindings,
                 struct xm_error *err)
{
    struct xm_state_store *own = states ? NULL : xm_state_store_create();
    struct xm_state_store *pending = xm_state_store_create();
    struct xm_eval_call c = {n,       in,       out,        NULL, states ? states : own,
                             pending, bindings, n_bindings, err};
    enum xm_status status = XM_OK;
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = NULL;
    if (!c.states || !pending)
        status = xm_eval_no_memory(err);
    if (status == XM_OK)
        status = compute_node(&c);
    if (status == XM_OK) {
        status = xm_state_commit(c.states, pending, err);
        if (status != XM_OK)
            destroy_results(out, n->n_out);
    }
    xm_state_store_destroy(pending);
    xm_state_store_destroy(own);
    return status;
}

/* ---- inputs and symbols --------------------------------------------------------- */

static const struct xm_tensor *
input_of(const struct run *r, const struct xm_node *parameter)
{
    for (uint32_t i = 0; i < r->e->n_inputs; i++) {
        const char *name = r->e->input_names[i];
        struct xm_value *v = xm_graph_find_value(r->e->graph, name);
        if (xm_graph_parameter(r->e->graph, name) == parameter ||
            (v && v->node == parameter))
            return r->e->inputs[i];
    }
    return NULL;
}

static enum xm_status
check_input_names(const struct run *r)
{
    for (uint32_t i = 0; i < r->e->n_inputs; i++) {
        const char *name = r->e->input_names[i];
        const struct xm_value *v = xm_graph_find_value(r->e->graph, name);
        if (!xm_graph_parameter(r->e->graph, name) &&
            !(v && v->node->op == XM_OP_PARAMETER))
            return xm_fail(r->err, XM_NOT_FOUND, "the graph has no input '%s'", name);
    }
    return XM_OK;
}

static enum xm_status
bind(struct run *r, const char *symbol, int64_t value)
{
    struct xm_binding *grown = xm_realloc(
        r->bindings, (r->n_bindings + 2) * sizeof(*grown)); /* one more for eval_with */
    if (!grown)
        return xm_eval_no_memory(r->err);
    r->bindings = grown;
    r->bindings[r->n_bindings++] = (struct xm_binding){symbol, value};
    return XM_OK;
}

static bool
eval_with(struct run *r, struct xm_dim d, const char *symbol, int64_t value, int64_t *out)
{
    struct xm_binding *extra = &r->bindings[r->n_bindings];
    *extra = (struct xm_binding){symbol, value};
    return xm_dim_eval(d, r->bindings, r->n_bindings + 1, out, NULL) == XM_OK;
}

/* If dimension d has the form a s + b with one unbound symbol s, binds s so that d equals `value`.
 * Other dimensions stay unbound. */
static enum xm_status
solve(struct run *r, struct xm_dim d, int64_t value)
{
    const struct xm_dim_pool *pool = &r->e->graph->dims;
    for (size_t i = 0; i < pool->n_symbols; i++) {
        int64_t at_0, at_1, back;
        const char *s = pool->symbols[i];
        if (!eval_with(r, d, s, 0, &at_0) || !eval_with(r, d, s, 1, &at_1))
            continue;
        if (at_1 == at_0 || value < at_0 || (value - at_0) % (at_1 - at_0) != 0)
            return XM_OK;
        int64_t found = (value - at_0) / (at_1 - at_0);
        if (found < 0 || !eval_with(r, d, s, found, &back) || back != value)
            return XM_OK;
        return bind(r, s, found);
    }
    return XM_OK;
}

/* Compares dimension i of `node` with the size found in the tensor, or binds a symbol by it. */
static enum xm_status
meet(struct run *r, const struct xm_node *node, uint32_t i, int64_t found)
{
    struct xm_dim d = node->out[0].type.shape.dim[i];
    int64_t value;
    if (xm_dim_is_unknown(d))
        return XM_OK;
    if (xm_dim_eval(d, r->bindings, r->n_bindings, &value, NULL) != XM_OK)
        return solve(r, d, found);
    if (value == found)
        return XM_OK;
    struct xm_strbuf text = {0};
    xm_dim_print(d, &text);
    enum xm_status status = xm_fail(
        r->err, XM_INVALID,
        "dimension %u of '%s' is %" PRId64 ", but %s is %" PRId64 " by the other shapes",
        i, *node->attr.name.name ? node->attr.name.name : node->name, found,
        xm_strbuf_text(&text), value);
    xm_strbuf_free(&text);
    return status;
}

static enum xm_status
meet_tensor(struct run *r, const struct xm_node *node, const struct xm_tensor *t)
{
    const struct xm_type *type = &node->out[0].type;
    char text[128];
    if (t->rank != type->shape.rank ||
        (t->element != type->element && type->element != XM_DYNAMIC)) {
        struct xm_strbuf expected = {0};
        xm_type_print(type, &expected);
        enum xm_status status =
            xm_fail(r->err, XM_INVALID, "'%s' is %s, expected %s", node->attr.name.name,
                    xm_tensor_text(t, text, sizeof(text)), xm_strbuf_text(&expected));
        xm_strbuf_free(&expected);
        return status;
    }
    for (uint32_t i = 0; i < t->rank; i++)
        XM_TRY(meet(r, node, i, t->dim[i]));
    return XM_OK;
}

static enum xm_status
meet_all(struct run *r)
{
    xm_for_each_node(n, r->e->graph)
    {
        const struct xm_tensor *t = NULL;
        if (n->op == XM_OP_PARAMETER)
            t = input_of(r, n);
        else if (n->op == XM_OP_READ_VALUE)
            t = xm_state_get(r->states, n->attr.name.name);
        if (t)
            XM_TRY(meet_tensor(r, n, t));
    }
    return XM_OK;
}

/* Binds symbols in rounds until a round finds none: past + tokens can be solved only after
 * tokens. */
static enum xm_status
bind_symbols(struct run *r)
{
    uint32_t before;
    r->bindings = xm_malloc((r->e->n_bindings + 1) * sizeof(*r->bindings));
    if (!r->bindings)
        return xm_eval_no_memory(r->err);
    r->n_bindings = r->e->n_bindings;
    if (r->n_bindings)
        memcpy(r->bindings, r->e->bindings, r->n_bindings * sizeof(*r->bindings));
    do {
        before = r->n_bindings;
        XM_TRY(meet_all(r));
    } while (r->n_bindings != before);
    return XM_OK;
}

/* ---- what is needed ------------------------------------------------------------- */

static bool
reads_state_of(const struct run *r, const struct xm_node *later,
               const struct xm_node *writer)
{
    return later->op == XM_OP_ATTENTION && r->slots[later->id].needed &&
           xm_is_none(xm_in(later, XM_ATTENTION_K)) &&
           strcmp(later->attr.attention.key_state, writer->attr.attention.key_state) == 0;
}

/* Whether a node after n that is needed reads the state that n writes. */
static bool
state_is_read(const struct run *r, const struct xm_node *n)
{
    for (const struct xm_node *later = n->next; later; later = later->next) {
        if (reads_state_of(r, later, n))
            return true;
    }
    return false;
}

static bool
is_root(const struct run *r, const struct xm_node *n, const struct xm_value *value)
{
    if (value && value->node == n)
        return true;
    if (n->op != XM_OP_ATTENTION)
        return !value &&
               (n->op == XM_OP_RESULT || n->op == XM_OP_ASSIGN || n->op == XM_OP_SEND);
    return value ? state_is_read(r, n) : !xm_is_none(xm_in(n, XM_ATTENTION_K));
}

/* Whether operand i must be computed. A weight is decoded only for users that cannot read its
 * stored form. */
static bool
counts(const struct xm_node *user, uint32_t i)
{
    enum xm_op op = xm_in(user, i)->node->op;
    return op != XM_OP_NONE && (op != XM_OP_WEIGHT || !xm_eval_takes_weight(user->op, i));
}

bool
xm_eval_may_lack(enum xm_op op, uint32_t i)
{
    const char *classes = references[op].classes;
    const size_t n = strlen(classes);
    const char class = n ? classes[i < n ? i : n - 1] : 'a';
    return class >= 'A' && class <= 'Z';
}

/* Marks the needed nodes backwards from `value` or, if it is NULL, from all results, assigns and
 * nodes that write states. */
static void
mark_needed(struct run *r, const struct xm_value *value)
{
    for (const struct xm_node *n = r->e->graph->last; n; n = n->before) {
        struct slot *s = &r->slots[n->id];
        s->needed |= is_root(r, n, value);
        for (uint32_t i = 0; s->needed && i < n->n_in; i++) {
            if (!counts(n, i))
                continue;
            r->slots[xm_in(n, i)->node->id].needed = true;
            r->slots[xm_in(n, i)->node->id].uses_left++;
        }
    }
}

/* ---- the run -------------------------------------------------------------------- */

static void
release_slot(struct slot *s)
{
    if (s->out)
        destroy_results(s->out, s->n_out);
    xm_free(s->out);
    s->out = NULL;
}

static void
release_operands(struct run *r, const struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct slot *s = &r->slots[xm_in(n, i)->node->id];
        if (counts(n, i) && --s->uses_left == 0)
            release_slot(s);
    }
}

static enum xm_status
fill_parameter(struct run *r, const struct xm_node *n, struct slot *s)
{
    const struct xm_tensor *t = input_of(r, n);
    if (!t)
        return xm_fail(r->err, XM_INVALID, "the input '%s' has no tensor",
                       n->attr.name.name);
    return xm_tensor_copy(&s->out[0], t, r->err);
}

static enum xm_status
run_node(struct run *r, const struct xm_node *n)
{
    struct slot *s = &r->slots[n->id];
    s->out = xm_calloc(n->n_out, sizeof(*s->out));
    const struct xm_tensor **in = xm_calloc(n->n_in, sizeof(*in));
    enum xm_status status = s->out && in ? XM_OK : xm_eval_no_memory(r->err);
    s->n_out = s->out ? n->n_out : 0;
    for (uint32_t i = 0; status == XM_OK && i < n->n_in; i++) {
        const struct slot *from = &r->slots[xm_in(n, i)->node->id];
        in[i] = counts(n, i) && from->out ? from->out[xm_in(n, i)->index] : NULL;
    }
    struct xm_eval_call c = {n,          in,          s->out,        NULL,  r->states,
                             r->pending, r->bindings, r->n_bindings, r->err};
    if (status == XM_OK)
        status = n->op == XM_OP_PARAMETER ? fill_parameter(r, n, s) : compute_node(&c);
    if (status == XM_OK && r->e->hook)
        status = r->e->hook(n, in, s->out, r->e->hook_ctx);
    xm_free(in);
    release_operands(r, n);
    return status;
}

static void
run_free(struct run *r)
{
    for (uint32_t i = 0; r->slots && i < r->e->graph->next_id; i++)
        release_slot(&r->slots[i]);
    xm_free(r->slots);
    xm_free(r->bindings);
    xm_state_store_destroy(r->own_states);
    xm_state_store_destroy(r->pending);
}

static enum xm_status
run_begin(struct run *r, const struct xm_eval *e, const struct xm_value *value,
          struct xm_error *err)
{
    memset(r, 0, sizeof(*r));
    r->e = e;
    r->err = err;
    r->slots = xm_calloc(e->graph->next_id, sizeof(*r->slots));
    r->own_states = e->states ? NULL : xm_state_store_create();
    r->states = e->states ? e->states : r->own_states;
    r->pending = xm_state_store_create();
    if (!r->slots || !r->states || !r->pending)
        return xm_eval_no_memory(err);
    XM_TRY(check_input_names(r));
    XM_TRY(bind_symbols(r));
    mark_needed(r, value);
    return XM_OK;
}

/* Runs the marked nodes up to and including `last`; NULL: all. */
static enum xm_status
run_nodes(struct run *r, const struct xm_node *last)
{
    for (const struct xm_node *n = r->e->graph->first; n; n = n->next) {
        if (r->slots[n->id].needed)
            XM_TRY(run_node(r, n));
        if (n == last)
            break;
    }
    return XM_OK;
}

static uint32_t
count_results(const struct xm_graph *g)
{
    uint32_t n = 0;
    xm_for_each_node(node, g) n += node->op == XM_OP_RESULT;
    return n;
}

/* Takes a computed value out of its slot. */
static struct xm_tensor *
take(struct run *r, const struct xm_value *v)
{
    struct slot *s = &r->slots[v->node->id];
    struct xm_tensor *t = s->out ? s->out[v->index] : NULL;
    if (s->out)
        s->out[v->index] = NULL;
    return t;
}

enum xm_status
xm_evaluate(const struct xm_eval *e, struct xm_tensor **outputs, uint32_t n_outputs,
            struct xm_error *err)
{
    struct run r;
    uint32_t i = 0, results = count_results(e->graph);
    if (results != n_outputs)
        return xm_fail(err, XM_INVALID,
                       "the graph has %u results, the caller asks for %u", results,
                       n_outputs);
    memset(outputs, 0, n_outputs * sizeof(*outputs));
    enum xm_status status = run_begin(&r, e, NULL, err);
    if (status == XM_OK)
        status = run_nodes(&r, NULL);
    if (status == XM_OK)
        status = xm_state_commit(r.states, r.pending, err);
    xm_for_each_node(n, e->graph)
    {
        if (status == XM_OK && n->op == XM_OP_RESULT)
            outputs[i++] = take(&r, &n->out[0]);
    }
    run_free(&r);
    return status;
}

enum xm_status
xm_evaluate_value(const struct xm_eval *e, const struct xm_value *value,
                  struct xm_tensor **out, struct xm_error *err)
{
    struct run r;
    *out = NULL;
    enum xm_status status = run_begin(&r, e, value, err);
    if (status == XM_OK) {
        r.slots[value->node->id].uses_left++; /* one use by the caller */
        status = run_nodes(&r, value->node);
    }
    if (status == XM_OK)
        *out = take(&r, value);
    run_free(&r);
    return status;
}
