/* SPDX-License-Identifier: Apache-2.0
 *
 * Expert blocks that no pass has fused: replaces products by gather_matmul, which computes the
 * chosen experts only.
 *
 *     sum_e routed[e] f(tile(X))   ->   sum_k weights[:,k] f'(X)
 *
 * where f' is f with every matmul by all experts' weights [E,N,K] replaced by a gather_matmul of
 * the ids' weights. The other ops of f work elementwise or along rows, and are rebuilt on [K,T,..]
 * instead of [E,T,..]. Of operands that do not depend on the tiled tokens, [E,1,N] and [E,T,N], the
 * rows of the chosen experts are gathered. A moe or moe_compressed node that is left is replaced in
 * the same way. A block that does not have this form stays, with a note to the user: there every
 * expert computes every token.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"

enum { EXPERTS = MOE_BLOCK_SLOTS };
enum { MAX_VISITS = 64, MAX_DEPTH = 24, MAX_IN = 6 };

/* ---- pieces ------------------------------------------------------------------------ */

static struct xm_value *
gather_matmul(struct xm_builder *b, struct xm_value *a, struct xm_value *w,
              struct xm_value *ids, struct xm_value *bias)
{
    return xm_op_build(b, XM_OP_GATHER_MATMUL, NULL,
                       (struct xm_value *[]){a, w, ids, bias}, 4);
}

/* Converts ids to i32, which gather_matmul requires. */
static struct xm_value *
as_i32(struct xm_builder *b, struct xm_value *ids)
{
    return ids->type.element == XM_I32 ? ids : xm_convert(b, ids, XM_I32);
}

/* [T,H] -> [1,T,H]; with `turn` [T,K] -> [K,T,1]. */
static struct xm_value *
to_slots(struct xm_builder *b, struct xm_value *v, bool turn)
{
    static const int64_t swapped[] = {1, 0};
    const struct xm_dim *d = v->type.shape.dim;
    struct xm_dim one = xm_dim_const(1);
    if (turn)
        return xm_reshape(b, xm_transpose(b, v, swapped, 2),
                          (struct xm_dim[]){d[1], d[0], one}, 3);
    return xm_reshape(b, v, (struct xm_dim[]){one, d[0], d[1]}, 3);
}

/* sum_k weights[:,k] slots[k], which is [T,H]. */
static struct xm_value *
combine(struct xm_builder *b, struct xm_value *slots, struct xm_value *weights)
{
    static const int64_t first[] = {0};
    union xm_attr attr = {.reduce = {.keep_dims = false}};
    struct xm_value *in[2];
    in[0] = xm_op2(b, XM_OP_MULTIPLY, slots, to_slots(b, weights, true));
    in[1] = xm_const_ints(b, XM_I64, first, 1);
    return xm_op_build(b, XM_OP_REDUCE_SUM, &attr, in, 2);
}

/* ---- the tiled block: may it be rebuilt -------------------------------------------- */

static bool
is_tiled(const struct xm_value *v)
{
    return v->node->op == XM_OP_RESHAPE && xm_in(v->node, 0)->node->op == XM_OP_TILE;
}

/* The matmul that computes v, perhaps with a bias [E,1,N] added (*bias); NULL: v is neither. */
static struct xm_value *
matmul_of(struct xm_value *v, int64_t experts, struct xm_value **bias)
{
    *bias = NULL;
    if (v->node->op == XM_OP_MATMUL)
        return v;
    for (uint32_t i = 0; v->node->op == XM_OP_ADD && i < 2; i++) {
        struct xm_value *c = xm_in(v->node, i), *matmul = xm_in(v->node, 1 - i);
        const struct xm_shape *s = &c->type.shape;
        *bias = c;
        if (matmul->node->op == XM_OP_MATMUL && c->node->op == XM_OP_CONST &&
            s->rank == 3 && xm_dim_is(s->dim[0], experts) && xm_dim_is(s->dim[1], 1) &&
            xm_dim_eq(s->dim[2], matmul->type.shape.dim[2]))
            return matmul;
    }
    return NULL;
}

/* Whether the op works along the last axis of its rank-3 operands only. */
static bool
is_along_rows(const struct xm_node *n)
{
    const uint32_t rank = 3;
    switch (n->op) {
    case XM_OP_SLICE:
        return n->n_in == 5 && xm_is_axis(xm_in(n, 4), rank, 2);
    case XM_OP_SPLIT:
    case XM_OP_VARIADIC_SPLIT:
        return xm_is_axis(xm_in(n, 1), rank, 2);
    case XM_OP_CONCAT:
    case XM_OP_SOFTMAX:
        return n->attr.axis.axis == 2;
    case XM_OP_REDUCE_SUM:
    case XM_OP_REDUCE_MEAN:
    case XM_OP_REDUCE_MAX:
    case XM_OP_REDUCE_MIN:
    case XM_OP_REDUCE_PROD:
        return n->attr.reduce.keep_dims && xm_is_axis(xm_in(n, 1), rank, 2);
    case XM_OP_MATMUL: /* by one matrix for all experts      */
        return !n->attr.matmul.transpose_a && xm_in(n, 1)->type.shape.rank == 2;
    case XM_OP_RMS_NORM:
        return true;
    default:
        return xm_op_info(n->op)->flags & XM_OPF_ELTWISE;
    }
}

/* Whether the op that computes v works on each expert separately, so that it can be computed for
 * the chosen experts only. v must have a row for each expert. */
static bool
is_apart(const struct xm_match *m, const struct xm_value *v)
{
    const struct xm_shape *s = &v->type.shape;
    return s->rank == 3 && xm_dim_is(s->dim[0], xm_moe_experts(m)) &&
           v->node->n_in <= MAX_IN && is_along_rows(v->node);
}

/* How an operand that is not computed by the experts relates to them. */
enum operand {
    FOR_ALL,     /* the same for every expert: rank below 3, or [1,..]                */
    ROW_EACH,    /* [E,1,N]: one row for each expert                                  */
    MATRIX_EACH, /* [E,T,N]: one row for each expert and token                        */
    UNKNOWN
};

static enum operand
operand_of(const struct xm_match *m, const struct xm_value *v)
{
    const struct xm_shape *s = &v->type.shape;
    if (s->rank < 3 || (s->rank == 3 && xm_dim_is(s->dim[0], 1)))
        return FOR_ALL;
    if (s->rank > 3 || !xm_dim_is(s->dim[0], xm_moe_experts(m)) || xm_last_dim(v) < 0)
        return UNKNOWN;
    if (xm_dim_is(s->dim[1], 1))
        return ROW_EACH;
    return xm_dim_eq(s->dim[1], m->slot[MOE_IDS]->type.shape.dim[0]) ? MATRIX_EACH
                                                                     : UNKNOWN;
}

/* Whether v can be rebuilt. `left` limits the number of visits, because the graph may come from
 * anyone. */
static bool
may_rebuild(struct xm_match *m, struct xm_value *v, int depth, int *left)
{
    struct xm_value *bias, *x, *matmul = matmul_of(v, xm_moe_experts(m), &bias);
    if (depth == 0 || --*left < 0)
        return refuse(m, "there are more operations between the tiled tokens and the sum "
                         "than experts have");
    if (is_tiled(v))
        return xm_moe_is_tiled(m, v, xm_moe_experts(m), &x);
    if (matmul && xm_moe_is_expert_matmul(m, matmul, xm_moe_experts(m)))
        return may_rebuild(m, xm_in(matmul->node, 0), depth - 1, left);
    if (!is_apart(m, v))
        return operand_of(m, v) != UNKNOWN ||
               refuse(m, "an operation between the tiled tokens and the sum is not "
                         "elementwise, or its result is not [experts, tokens, columns]");
    for (uint32_t i = 0; i < v->node->n_in; i++)
        if (!may_rebuild(m, xm_in(v->node, i), depth - 1, left))
            return false;
    return true;
}

static bool
block_holds(struct xm_match *m)
{
    int left = MAX_VISITS;
    return xm_moe_tail_holds(m) && may_rebuild(m, m->slot[EXPERTS], MAX_DEPTH, &left);
}

/* ---- the tiled block: rebuilding it ------------------------------------------------ */

struct rebuild {
    struct xm_builder *b;
    struct xm_match *m;
    struct xm_value *ids;
    uint32_t n;
    struct {
        const struct xm_value *from;
        struct xm_value *to;
    } done[MAX_VISITS]; /* a value that two ops read is rebuilt once */
};

static struct xm_value *rebuild(struct rebuild *r, struct xm_value *v);

/* rows [E,1,N] or [E,N] -> [K,T,N]: gathers the rows of the chosen experts. */
static struct xm_value *
rows_of_ids(struct xm_builder *b, struct xm_value *rows, struct xm_value *ids)
{
    static const int64_t swapped[] = {1, 0}, first[] = {0};
    const struct xm_shape *s = &rows->type.shape;
    struct xm_value *in[] = {
        xm_reshape(b, rows, (struct xm_dim[]){s->dim[0], s->dim[s->rank - 1]}, 2),
        xm_transpose(b, ids, swapped, 2), xm_const_ints(b, XM_I64, first, -1)};
    return xm_op_build(b, XM_OP_GATHER, NULL, in, 3);
}

/* v [E,T,N] -> [K,T,N]: gathers, for each token, the rows of the chosen experts. */
static struct xm_value *
matrices_of_ids(struct xm_builder *b, struct xm_value *v, struct xm_value *ids)
{
    static const int64_t swapped[] = {1, 0, 2};
    const union xm_attr attr = {.gather = {.batch_dims = 1}};
    const struct xm_dim *d = ids->type.shape.dim;
    struct xm_value *in[] = {
        xm_transpose(b, v, swapped, 3),
        xm_reshape(b, ids, (struct xm_dim[]){d[0], d[1], xm_dim_const(1)}, 3)};
    return xm_transpose(b, xm_op_build(b, XM_OP_GATHER_ND, &attr, in, 2), swapped, 3);
}

static struct xm_value *
operand_of_slots(struct rebuild *r, struct xm_value *v)
{
    switch (operand_of(r->m, v)) {
    case ROW_EACH:
        return rows_of_ids(r->b, v, r->ids);
    case MATRIX_EACH:
        return matrices_of_ids(r->b, v, r->ids);
    default:
        return v;
    }
}

static struct xm_value *
rebuild_new(struct rebuild *r, struct xm_value *v)
{
    struct xm_value *bias, *in[MAX_IN];
    struct xm_value *matmul = matmul_of(v, xm_moe_experts(r->m), &bias);
    struct xm_node *n = v->node;
    if (is_tiled(v))
        return to_slots(r->b, xm_in(xm_in(n, 0)->node, 0), false);
    if (matmul && xm_moe_is_expert_matmul(r->m, matmul, xm_moe_experts(r->m)))
        return gather_matmul(r->b, rebuild(r, xm_in(matmul->node, 0)),
                             xm_in(matmul->node, 1), r->ids,
                             bias ? bias : xm_none(r->b->graph));
    if (!is_apart(r->m, v))
        return operand_of_slots(r, v);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = rebuild(r, xm_in(n, i));
    n = xm_node_build(r->b, n->op, &n->attr, in, n->n_in);
    return n ? &n->out[v->index] : NULL;
}

static struct xm_value *
rebuild(struct rebuild *r, struct xm_value *v)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->done[i].from == v)
            return r->done[i].to;
    struct xm_value *to = rebuild_new(r, v);
    if (to) {
        r->done[r->n].from = v;
        r->done[r->n++].to = to;
    }
    return to;
}

static struct xm_value *
lower_block(struct xm_builder *b, struct xm_match *m)
{
    struct rebuild r = {.b = b, .m = m, .ids = as_i32(b, m->slot[MOE_IDS])};
    struct xm_value *slots = rebuild(&r, m->slot[EXPERTS]);
    if (!slots)
        return NULL;
    return xm_reshape_like(b, combine(b, slots, m->slot[MOE_WEIGHTS]),
                           &m->root->out[0].type.shape);
}

/* ---- moe and moe_compressed -------------------------------------------------------- */

static struct xm_value *
activate(struct xm_builder *b, const struct xm_moe_attr *a, struct xm_value *gate,
         struct xm_value *up)
{
    union xm_attr attr = {.glu = {(int)a->activation}};
    if (a->activation != XM_ACT_SWISH || a->beta == 1.0f)
        return xm_op_build(b, XM_OP_GLU, &attr, (struct xm_value *[]){gate, up}, 2);
    return xm_op2(b, XM_OP_MULTIPLY,
                  xm_op2(b, XM_OP_SWISH, gate, xm_const_float(b, XM_F32, a->beta)), up);
}

/* Applies the limits and up_add of an expert to gate and up; returns the new up. */
static struct xm_value *
clamp(struct xm_builder *b, const struct xm_moe_attr *a, struct xm_value **gate,
      struct xm_value *up)
{
    union xm_attr limits = {.clamp = {-(double)a->limit, (double)a->limit}};
    if (a->limit > 0) {
        *gate = xm_op2(b, XM_OP_MINIMUM, *gate, xm_const_float(b, XM_F32, a->limit));
        up = xm_op_build(b, XM_OP_CLAMP, &limits, &up, 1);
    }
    return a->up_add != 0 ? xm_op2(b, XM_OP_ADD, up, xm_const_float(b, XM_F32, a->up_add))
                          : up;
}

static struct xm_value *
add_shared(struct xm_builder *b, const struct xm_node *n, struct xm_value *y)
{
    struct xm_value *x = xm_in(n, XM_MOE_HIDDEN), *gate, *up, *shared;
    struct xm_value *gate_gate = xm_in(n, XM_MOE_SHARED_GATE_GATE);
    if (xm_is_none(xm_in(n, XM_MOE_SHARED_GATE)))
        return y;
    gate = xm_matmul(b, x, xm_in(n, XM_MOE_SHARED_GATE), false, true);
    up = xm_matmul(b, x, xm_in(n, XM_MOE_SHARED_UP), false, true);
    shared = xm_matmul(b, activate(b, &n->attr.moe, gate, up),
                       xm_in(n, XM_MOE_SHARED_DOWN), false, true);
    if (!xm_is_none(gate_gate))
        shared =
            xm_op2(b, XM_OP_MULTIPLY, shared,
                   xm_op1(b, XM_OP_SIGMOID, xm_matmul(b, x, gate_gate, false, true)));
    return xm_op2(b, XM_OP_ADD, y, shared);
}

static struct xm_value *
lower_moe(struct xm_builder *b, struct xm_match *m)
{
    const struct xm_node *n = m->root;
    const struct xm_moe_attr *a = &n->attr.moe;
    struct xm_value *ids = as_i32(b, xm_in(n, XM_MOE_IDS));
    struct xm_value *x = to_slots(b, xm_in(n, XM_MOE_HIDDEN), false), *up, *y;
    struct xm_value *factor = xm_in(n, XM_MOE_FACTOR);
    struct xm_value *gate =
        gather_matmul(b, x, xm_in(n, XM_MOE_W_GATE), ids, xm_in(n, XM_MOE_BIAS_GATE));
    if (a->gate_up == XM_GATE_UP_APART) {
        up = gather_matmul(b, x, xm_in(n, XM_MOE_W_UP), ids, xm_in(n, XM_MOE_BIAS_UP));
    } else {
        up = xm_moe_up_of(b, a, gate);
        gate = xm_moe_gate_of(b, a, gate);
    }
    up = clamp(b, a, &gate, up);
    y = activate(b, a, gate, up);
    if (!xm_is_none(factor))
        y = xm_op2(b, XM_OP_MULTIPLY, y, rows_of_ids(b, factor, ids));
    y = gather_matmul(b, y, xm_in(n, XM_MOE_W_DOWN), ids, xm_in(n, XM_MOE_BIAS_DOWN));
    y = combine(b, y, xm_in(n, XM_MOE_ROUTING));
    return add_shared(b, n, y);
}

static bool
is_matrix(struct xm_match *m)
{
    m->why = "the tokens are not a matrix [tokens, hidden]";
    return xm_in(m->root, XM_MOE_HIDDEN)->type.shape.rank == 2 &&
           xm_in(m->root, XM_MOE_IDS)->type.shape.rank == 2;
}

/* ---- the pass ---------------------------------------------------------------------- */

/* clang-format off */
static const struct xm_rule rules[] = {
    { "tiled block",    SUM_OF(VAR(EXPERTS)),      .apply = lower_block, .condition = block_holds },
    { "moe",            ANY(0, 0, MOE),            .apply = lower_moe,   .condition = is_matrix },
    { "moe_compressed", ANY(0, 0, MOE_COMPRESSED), .apply = lower_moe,   .condition = is_matrix },
    { .name = NULL },
};
/* clang-format on */

bool
xm_pass_lower_unfused_moe(struct xm_graph *g, const struct xm_caps *caps)
{
    xm_moe_note_unfused(g, caps);
    bool any = xm_rewrite(g, caps, rules);
    xm_moe_note_dense(g, caps, rules);
    return any;
}

/* ---- what holds afterwards --------------------------------------------------------- */

enum xm_status
xm_moe_ensure_lowered(struct xm_graph *g, struct xm_error *err)
{
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_MOE && n->op != XM_OP_MOE_COMPRESSED)
            continue;
        const char *why = xm_rewrite_near_miss(rules, g, NULL, n);
        return xm_fail(
            err, XM_UNSUPPORTED,
            "%%%u %s '%.120s' belongs to a block of experts that cannot run: %.140s",
            n->id, xm_op_info(n->op)->text, n->name,
            *why ? why : "XM_SKIP or XM_STOP excludes the passes that would lower it");
    }
    return XM_OK;
}
