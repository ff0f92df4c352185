/* SPDX-License-Identifier: Apache-2.0
 *
 * References of the ops that only passes create: each checks its operands and calls the formula of
 * runtime/reference.
 */
#include <inttypes.h>
#include <string.h>

#include "transformations/graph/evaluate_ops.h"

/* Turns the status of a formula into an error with a message. */
static enum xm_status
done(const struct xm_eval_call *c, enum xm_status status)
{
    if (status == XM_NO_MEMORY)
        return xm_eval_no_memory(c->err);
    return status == XM_OK
               ? XM_OK
               : xm_fail(c->err, status,
                         "the index of an expert is outside the number of experts");
}

/* Checks that operand i has n elements. */
static enum xm_status
check_size(const struct xm_eval_call *c, uint32_t i, uint64_t n)
{
    char text[128];
    return c->in[i]->n == n
               ? XM_OK
               : xm_fail(c->err, XM_INVALID,
                         "operand %u is %s, expected %" PRIu64 " elements in all", i,
                         xm_tensor_text(c->in[i], text, sizeof(text)), n);
}

static const float *
floats_of(const struct xm_eval_call *c, uint32_t i)
{
    return c->in[i] ? c->in[i]->f : NULL;
}

/* Size of the last dimension. */
static uint64_t
last_dim(const struct xm_tensor *t)
{
    return t->rank ? (uint64_t)t->dim[t->rank - 1] : 1;
}

enum xm_status
xm_eval_rms_norm(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0];
    uint64_t n = last_dim(x);
    bool one = c->in[1] && c->in[1]->n == 1;
    xm_ref_rms_norm(x->f, one ? NULL : floats_of(c, 1), n ? x->n / n : 0, n,
                    c->node->attr.rms_norm.epsilon, c->out[0]->f);
    for (uint64_t i = 0; one && i < x->n; i++)
        c->out[0]->f[i] *= c->in[1]->f[0];
    return XM_OK;
}

enum xm_status
xm_eval_row_chain(struct xm_eval_call *c)
{
    struct xm_row_chain chain;
    const float *x[XM_CHAIN_XS], *constant[XM_CHAIN_CS];
    float *y[XM_CHAIN_YS];
    bool is_number[XM_CHAIN_CS];
    XM_TRY(xm_row_chain_parse(c->node->attr.row_chain.steps, &chain, c->err));
    uint64_t n = last_dim(c->in[0]);
    for (uint32_t i = 0; i < chain.n_x; i++)
        x[i] = c->in[i]->f;
    for (uint32_t i = 0; i < chain.n_c; i++) {
        const struct xm_tensor *t = c->in[chain.n_x + i];
        is_number[i] = t->n == 1;
        constant[i] = t->f;
    }
    for (uint32_t i = 0; i < chain.n_y; i++)
        y[i] = c->out[i]->f;
    return done(c, xm_ref_row_chain(&chain, x, constant, is_number,
                                    n ? c->in[0]->n / n : 0, n, y));
}

void
xm_eval_rotate(const struct xm_tensor *x, const struct xm_tensor *cos,
               const struct xm_tensor *sin, struct xm_tensor *out)
{
    const uint64_t size = xm_tensor_size(x, 1, 4), table = xm_tensor_size(cos, 1, 3);
    for (uint64_t b = 0; x->n > 0 && b < (uint64_t)x->dim[0]; b++) {
        const uint64_t at = cos->dim[0] == 1 ? 0 : b * table;
        xm_ref_rope(x->f + b * size, cos->f + at, sin->f + at, (uint64_t)x->dim[1],
                    (uint64_t)x->dim[2], last_dim(x), last_dim(cos), out->f + b * size);
    }
}

enum xm_status
xm_eval_rope(struct xm_eval_call *c)
{
    const struct xm_tensor *x = c->in[0], *cos = c->in[1], *sin = c->in[2];
    if (sin->n != cos->n)
        return xm_fail(c->err, XM_INVALID, "its operands do not agree");
    xm_eval_rotate(x, cos, sin, c->out[0]);
    return XM_OK;
}

/* Operands: positions [B,T], frequencies [R]. */
enum xm_status
xm_eval_rope_tables(struct xm_eval_call *c)
{
    const struct xm_tensor *positions = c->in[0], *frequencies = c->in[1];
    const union xm_attr *a = &c->node->attr;
    xm_ref_rope_tables(positions->i, frequencies->f, positions->n, frequencies->n,
                       a->rope_tables.scale, a->rope_tables.twice, c->out[0]->f,
                       c->out[1]->f);
    return XM_OK;
}

enum xm_status
xm_eval_glu(struct xm_eval_call *c)
{
    enum xm_activation form = (enum xm_activation)c->node->attr.glu.activation;
    struct xm_walk w;
    xm_walk_operands(&w, c, 2);
    float *out = c->out[0]->f;
    while (xm_walk_next(&w))
        *out++ =
            xm_ref_activation(form, 1.0f, c->in[0]->f[w.at[0]]) * c->in[1]->f[w.at[1]];
    return XM_OK;
}

/* Gets operand i as a weight and checks that it is [experts, rows, cols]; 0 for experts or rows:
 * any. */
static enum xm_status
get_weight(const struct xm_eval_call *c, uint32_t i, uint64_t experts, uint64_t rows,
           uint64_t cols, struct xm_weight *w)
{
    if (!xm_eval_weight_of(c, i, w))
        return xm_fail(c->err, XM_INVALID, "operand %u is not a weight", i);
    const char *wrong = xm_weight_check(w);
    if (wrong)
        return xm_fail(c->err, XM_INVALID, "operand %u: %s", i, wrong);
    if ((experts && w->experts != experts) || (rows && w->rows != rows) ||
        w->cols != cols)
        return xm_fail(c->err, XM_INVALID,
                       "operand %u has the unexpected shape [%" PRIu64 ",%" PRIu64
                       ",%" PRIu64 "]",
                       i, w->experts, w->rows, w->cols);
    return XM_OK;
}

/* Adds operand i, if present, to result 0. */
static void
add_addend(const struct xm_eval_call *c, uint32_t i)
{
    for (uint64_t j = 0; c->in[i] && j < c->out[0]->n; j++)
        c->out[0]->f[j] += c->in[i]->f[j];
}

/* ---- linear ---------------------------------------------------------------------- */

/* Computes y[tokens,N], n elements: the product of segment s, with its bias. */
static enum xm_status
eval_segment(struct xm_eval_call *c, uint32_t s, float *y, uint64_t n)
{
    const struct xm_tensor *x = c->in[XM_LINEAR_X];
    uint64_t cols = last_dim(x), tokens = cols ? x->n / cols : 0;
    uint32_t at = XM_LINEAR_W + s * XM_LINEAR_SEGMENT;
    struct xm_weight w;
    XM_TRY(get_weight(c, at, 1, 0, cols, &w));
    return n > 0 ? done(c, xm_ref_linear(x->f, tokens, &w, 0, floats_of(c, at + 1), y))
                 : XM_OK;
}

/* Result 0 = act(result 0) up[:,slice,:], where `up` has `slices` slices for each row. */
static void
gate(const struct xm_eval_call *c, const float *up, uint64_t slices, uint64_t slice)
{
    struct xm_tensor *y = c->out[0];
    enum xm_activation form = (enum xm_activation)c->node->attr.linear.activation;
    uint64_t row = last_dim(y);
    for (uint64_t j = 0; j < y->n; j++)
        y->f[j] = xm_ref_activation(form, 1.0f, y->f[j]) *
                  up[(j / row * slices + slice) * row + j % row];
}

static enum xm_status
eval_glu(struct xm_eval_call *c)
{
    const struct xm_tensor *factor = c->in[XM_LINEAR_FACTOR];
    uint64_t n = c->out[0]->n, slice = (uint64_t)c->node->attr.linear.slice;
    XM_TRY(eval_segment(c, 0, c->out[0]->f, n));
    if (n == 0)
        return XM_OK;
    if (factor) {
        gate(c, factor->f, factor->n / n, slice);
        return XM_OK;
    }
    float *up = xm_malloc(n * sizeof(*up));
    if (!up)
        return xm_eval_no_memory(c->err);
    enum xm_status status = eval_segment(c, 1, up, n);
    if (status == XM_OK)
        gate(c, up, 1, 0);
    xm_free(up);
    return status;
}

enum xm_status
xm_eval_linear(struct xm_eval_call *c)
{
    if (c->node->attr.linear.glu)
        return eval_glu(c);
    for (uint32_t s = 0; s < c->node->n_out; s++)
        XM_TRY(eval_segment(c, s, c->out[s]->f, c->out[s]->n));
    add_addend(c, XM_LINEAR_ADDEND);
    return XM_OK;
}

/* ---- one product on the chosen experts ------------------------------------------ */

enum { GM_A, GM_WEIGHT, GM_IDS, GM_BIAS };

enum xm_status
xm_eval_gather_matmul(struct xm_eval_call *c)
{
    struct xm_weight w;
    int32_t *ids;
    const struct xm_tensor *a = c->in[GM_A], *chosen = c->in[GM_IDS];
    XM_TRY(get_weight(c, GM_WEIGHT, 0, 0, (uint64_t)a->dim[2], &w));
    uint64_t tokens = (uint64_t)chosen->dim[0], top_k = (uint64_t)chosen->dim[1];
    uint64_t slots = (uint64_t)a->dim[0];
    XM_TRY(xm_eval_ids(c, GM_IDS, w.experts, &ids));
    enum xm_status status = XM_OK;
    if (c->out[0]->n > 0)
        status = xm_ref_gather_matmul(a->f, slots, &w, ids, floats_of(c, GM_BIAS), tokens,
                                      (uint32_t)top_k, c->out[0]->f);
    xm_free(ids);
    return done(c, status);
}

/* ---- routing -------------------------------------------------------------------- */

enum { ROUTER_LOGITS, ROUTER_BIAS, ROUTER_EXPERT_SCALE };

enum xm_status
xm_eval_moe_router(struct xm_eval_call *c)
{
    const struct xm_moe_routing *r = &c->node->attr.router;
    const struct xm_tensor *logits = c->in[ROUTER_LOGITS];
    uint64_t experts = last_dim(logits), tokens = experts ? logits->n / experts : 0;
    uint64_t n = tokens * (uint64_t)r->top_k;
    int32_t *ids = xm_malloc(n * sizeof(*ids));
    if (!ids)
        return xm_eval_no_memory(c->err);
    enum xm_status status = xm_ref_moe_route(r, logits->f, floats_of(c, ROUTER_BIAS),
                                             floats_of(c, ROUTER_EXPERT_SCALE), tokens,
                                             experts, c->out[0]->f, ids);
    for (uint64_t i = 0; status == XM_OK && i < n; i++)
        c->out[1]->i[i] = ids[i];
    xm_free(ids);
    return done(c, status);
}

/* ---- the experts ---------------------------------------------------------------- */

struct experts {
    struct xm_weight gate, up, down;
    struct xm_moe_weights weights;
    uint64_t tokens, hidden;
    uint64_t all; /* number of experts that a token may choose */
};

static enum xm_status
get_experts(const struct xm_eval_call *c, struct experts *x)
{
    const struct xm_moe_attr *attr = &c->node->attr.moe;
    const struct xm_tensor *hidden = c->in[XM_MOE_HIDDEN];
    bool apart = attr->gate_up == XM_GATE_UP_APART;
    memset(x, 0, sizeof(*x));
    x->hidden = last_dim(hidden);
    x->tokens = x->hidden ? hidden->n / x->hidden : 0;
    XM_TRY(get_weight(c, XM_MOE_W_GATE, xm_moe_is_part(attr) ? attr->own_experts : 0, 0,
                      x->hidden, &x->gate));
    x->all = xm_moe_is_part(attr) ? (uint64_t)attr->experts : x->gate.experts;
    uint64_t inter = apart ? x->gate.rows : x->gate.rows / 2;
    if (apart)
        XM_TRY(get_weight(c, XM_MOE_W_UP, x->gate.experts, inter, x->hidden, &x->up));
    XM_TRY(get_weight(c, XM_MOE_W_DOWN, x->gate.experts, x->hidden, inter, &x->down));
    x->weights = (struct xm_moe_weights){.gate = &x->gate,
                                         .up = &x->up,
                                         .down = &x->down,
                                         .bias_gate = floats_of(c, XM_MOE_BIAS_GATE),
                                         .bias_up = floats_of(c, XM_MOE_BIAS_UP),
                                         .bias_down = floats_of(c, XM_MOE_BIAS_DOWN),
                                         .factor = floats_of(c, XM_MOE_FACTOR)};
    return XM_OK;
}

/* Sets the weight of the shared expert for token t: sigmoid(x[t] . g), or 1 without a gate. */
static enum xm_status
weigh_shared(const struct xm_eval_call *c, const struct experts *x, float *weights)
{
    struct xm_weight g;
    bool gated = xm_in(c->node, XM_MOE_SHARED_GATE_GATE)->node->op != XM_OP_NONE;
    if (gated) {
        XM_TRY(get_weight(c, XM_MOE_SHARED_GATE_GATE, 1, 1, x->hidden, &g));
        XM_TRY(done(
            c, xm_ref_linear(c->in[XM_MOE_HIDDEN]->f, x->tokens, &g, 0, NULL, weights)));
    }
    for (uint64_t t = 0; t < x->tokens; t++)
        weights[t] = gated ? xm_ref_sigmoid(weights[t]) : 1.0f;
    return XM_OK;
}

/* Adds the result of the shared expert, computed as an expert that every token chooses. */
static enum xm_status
run_shared(const struct xm_eval_call *c, const struct experts *x)
{
    struct xm_weight gate, up, down;
    const uint64_t n = x->tokens * x->hidden;
    if (xm_in(c->node, XM_MOE_SHARED_DOWN)->node->op == XM_OP_NONE || x->tokens == 0)
        return XM_OK;
    XM_TRY(get_weight(c, XM_MOE_SHARED_GATE, 1, 0, x->hidden, &gate));
    XM_TRY(get_weight(c, XM_MOE_SHARED_UP, 1, gate.rows, x->hidden, &up));
    XM_TRY(get_weight(c, XM_MOE_SHARED_DOWN, 1, x->hidden, gate.rows, &down));
    const struct xm_moe_attr plain = {.activation = c->node->attr.moe.activation,
                                      .beta = c->node->attr.moe.beta};
    const struct xm_moe_weights parts = {.gate = &gate, .up = &up, .down = &down};
    struct xm_arena scratch = {0};
    float *weights = xm_arena_alloc(&scratch, x->tokens * sizeof(*weights));
    float *y = xm_arena_alloc(&scratch, n * sizeof(*y));
    int32_t *ids = xm_arena_alloc(&scratch, x->tokens * sizeof(*ids));
    enum xm_status status =
        weights && y && ids ? weigh_shared(c, x, weights) : xm_eval_no_memory(c->err);
    if (status == XM_OK)
        status = done(c, xm_ref_moe(&plain, &parts, c->in[XM_MOE_HIDDEN]->f, weights, ids,
                                    x->tokens, 1, y));
    for (uint64_t i = 0; i < n && status == XM_OK; i++)
        c->out[0]->f[i] += y[i];
    xm_arena_free(&scratch);
    return status;
}

static enum xm_status
run_experts(const struct xm_eval_call *c, const struct experts *x, const float *weights,
            const int32_t *ids, uint32_t top_k)
{
    if (x->tokens == 0)
        return XM_OK;
    XM_TRY(done(c, xm_ref_moe(&c->node->attr.moe, &x->weights, c->in[XM_MOE_HIDDEN]->f,
                              weights, ids, x->tokens, top_k, c->out[0]->f)));
    return run_shared(c, x);
}

/* Takes weights and ids that another node has computed. The caller frees *ids (xm_free). */
static enum xm_status
take_routing(const struct xm_eval_call *c, const struct experts *x, uint64_t top_k,
             float *weights, int32_t **ids)
{
    const float *scale = floats_of(c, XM_MOE_EXPERT_SCALE);
    XM_TRY(check_size(c, XM_MOE_ROUTING, x->tokens * top_k));
    XM_TRY(check_size(c, XM_MOE_IDS, x->tokens * top_k));
    XM_TRY(xm_eval_ids(c, XM_MOE_IDS, x->all, ids));
    for (uint64_t i = 0; i < x->tokens * top_k; i++)
        weights[i] = c->in[XM_MOE_ROUTING]->f[i] * (scale ? scale[(*ids)[i]] : 1.0f);
    return XM_OK;
}

static enum xm_status
route(const struct xm_eval_call *c, const struct experts *x, uint64_t top_k,
      float *weights, int32_t **ids)
{
    XM_TRY(check_size(c, XM_MOE_ROUTING, x->tokens * x->all));
    *ids = xm_malloc(x->tokens * top_k * sizeof(**ids));
    if (!*ids)
        return xm_eval_no_memory(c->err);
    return done(c, xm_ref_moe_route(&c->node->attr.moe.routing, c->in[XM_MOE_ROUTING]->f,
                                    floats_of(c, XM_MOE_ROUTER_BIAS),
                                    floats_of(c, XM_MOE_EXPERT_SCALE), x->tokens, x->all,
                                    weights, *ids));
}

/* The index of expert `id` in the weights; -1: they do not have it. */
static int32_t
own_id(const struct xm_moe_attr *a, int32_t id)
{
    if (!xm_moe_is_part(a))
        return id;
    const int64_t own = id - a->first_expert;
    return own >= 0 && own < a->own_experts ? (int32_t)own : -1;
}

enum xm_status
xm_eval_moe(struct xm_eval_call *c)
{
    struct experts x;
    XM_TRY(get_experts(c, &x));
    const uint64_t top_k = (uint64_t)c->node->attr.moe.routing.top_k;
    float *weights = xm_malloc(x.tokens * top_k * sizeof(*weights));
    int32_t *ids = NULL;
    enum xm_status status = weights ? XM_OK : xm_eval_no_memory(c->err);
    if (status == XM_OK)
        status = c->in[XM_MOE_IDS] ? take_routing(c, &x, top_k, weights, &ids)
                                   : route(c, &x, top_k, weights, &ids);
    for (uint64_t i = 0; status == XM_OK && i < x.tokens * top_k; i++)
        ids[i] = own_id(&c->node->attr.moe, ids[i]);
    if (status == XM_OK)
        status = run_experts(c, &x, weights, ids, (uint32_t)top_k);
    if (status == XM_OK)
        add_addend(c, XM_MOE_ADDEND);
    xm_free(weights);
    xm_free(ids);
    return status;
}
