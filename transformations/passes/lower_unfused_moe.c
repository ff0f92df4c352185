/* SPDX-License-Identifier: Apache-2.0
 *
 * What no fusion took: experts as gather_matmul, which computes the chosen ones only.
 *
 *     sum_e routed[e] f(tile(X))   ->   sum_k weights[:,k] f'(X)
 *
 * where f' is f with every matmul by all experts' weights [E,N,K] turned into a
 * gather_matmul by the ids' weights; whatever else f is made of must be elementwise or
 * slice the last axis, and is rebuilt on [K,T,..] instead of [E,T,..]. A moe or
 * moe_compressed that is left is written out the same way.
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

/* gather_matmul's ids are i32, whatever chose them. */
static struct xm_value *
as_i32(struct xm_builder *b, struct xm_value *ids)
{
    return ids->type.element == XM_I32 ? ids : xm_convert(b, ids, XM_I32);
}

/* [T,H] -> [1,T,H]; [T,K] -> [K,T,1] with `turn`. */
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

/* sum_k weights[:,k] slots[k] : [T,H] */
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

/* A constant that all experts share keeps its meaning when they become slots. */
static bool
is_shared_constant(const struct xm_value *v)
{
    const struct xm_shape *s = &v->type.shape;
    return v->node->op == XM_OP_CONST &&
           (s->rank < 3 || (s->rank == 3 && xm_dim_is(s->dim[0], 1)));
}

/* The matmul of v, which is one, or one with a bias [E,1,N] added; else NULL. */
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

/* Whether operand i of an op that is rebuilt stays as it is. */
static bool
operand_stays(const struct xm_node *n, uint32_t i)
{
    return is_shared_constant(xm_in(n, i)) || (n->op == XM_OP_SLICE && i > 0);
}

static bool
keeps_experts_apart(const struct xm_node *n)
{
    if (n->n_in > MAX_IN || n->n_out != 1)
        return false;
    return (xm_op_info(n->op)->flags & XM_OPF_ELTWISE) ||
           (n->op == XM_OP_SLICE && n->n_in == 5 && xm_is_axis(xm_in(n, 4), 3, 2));
}

/* `left` bounds the visits: the graph may come from anywhere. */
static bool
may_rebuild(struct xm_match *m, struct xm_value *v, int depth, int *left)
{
    struct xm_value *bias, *x, *matmul = matmul_of(v, xm_moe_experts(m), &bias);
    if (depth == 0 || --*left < 0)
        return refuse(m, "more ops stand between tiled tokens and sum than experts have");
    if (is_tiled(v))
        return xm_moe_is_tiled(m, v, xm_moe_experts(m), &x);
    if (matmul)
        return xm_moe_is_expert_matmul(m, matmul, xm_moe_experts(m)) &&
               may_rebuild(m, xm_in(matmul->node, 0), depth - 1, left);
    if (!keeps_experts_apart(v->node))
        return refuse(m, "an op between tiled tokens and sum is not elementwise");
    for (uint32_t i = 0; i < v->node->n_in; i++)
        if (!operand_stays(v->node, i) &&
            !may_rebuild(m, xm_in(v->node, i), depth - 1, left))
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
    } done[MAX_VISITS]; /* what two ops read is rebuilt once */
};

static struct xm_value *rebuild(struct rebuild *r, struct xm_value *v);

static struct xm_value *
rebuild_new(struct rebuild *r, struct xm_value *v)
{
    struct xm_value *bias, *in[MAX_IN];
    struct xm_value *matmul = matmul_of(v, xm_moe_experts(r->m), &bias);
    struct xm_node *n = v->node;
    if (is_tiled(v))
        return to_slots(r->b, xm_in(xm_in(n, 0)->node, 0), false);
    if (matmul)
        return gather_matmul(r->b, rebuild(r, xm_in(matmul->node, 0)),
                             xm_in(matmul->node, 1), r->ids,
                             bias ? bias : xm_none(r->b->graph));
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = operand_stays(n, i) ? xm_in(n, i) : rebuild(r, xm_in(n, i));
    return xm_op_build(r->b, n->op, &n->attr, in, n->n_in);
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

/* What a routed expert does with gate and up before they meet. */
static struct xm_value *
clamp(struct xm_builder *b, const struct xm_moe_attr *a, struct xm_value **gate,
      struct xm_value *up)
{
    union xm_attr limits = {.clamp = {-a->limit, a->limit}};
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
    y = gather_matmul(b, y, xm_in(n, XM_MOE_W_DOWN), ids, xm_in(n, XM_MOE_BIAS_DOWN));
    y = combine(b, y, xm_in(n, XM_MOE_ROUTING));
    return add_shared(b, n, y);
}

static bool
is_matrix(struct xm_match *m)
{
    m->why = "the tokens are not a matrix [T,H]";
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
    return xm_rewrite(g, caps, rules);
}

/* ---- what holds afterwards --------------------------------------------------------- */

bool
xm_moe_feeds_experts(const struct xm_node *tile)
{
    for (const struct xm_use *u = tile->out[0].uses; u; u = u->next) {
        if (u->user->op != XM_OP_RESHAPE)
            continue;
        for (const struct xm_use *v = u->user->out[0].uses; v; v = v->next)
            if (v->user->op == XM_OP_MATMUL && xm_in(v->user, 1)->type.shape.rank == 3 &&
                xm_value_is_const(xm_in(v->user, 1)))
                return true;
    }
    return false;
}

/* Follows first users. */
struct xm_node *
xm_moe_sum_behind(struct xm_node *n)
{
    for (int i = 0; i < MAX_DEPTH && n->out[0].uses; i++) {
        n = n->out[0].uses->user;
        if (n->op == XM_OP_REDUCE_SUM)
            return n;
    }
    return NULL;
}

static enum xm_status
fail_left(struct xm_graph *g, struct xm_node *n, struct xm_error *err)
{
    struct xm_node *sum = n->op == XM_OP_TILE ? xm_moe_sum_behind(n) : n;
    const char *why = "no sum over experts was found behind it", *fusion = "";
    if (sum) {
        why = xm_rewrite_near_miss(rules, g, NULL, sum);
        if (n->op == XM_OP_TILE)
            fusion =
                xm_rewrite_near_miss(xm_rules_fuse_vectorized_moe_3gemm, g, NULL, sum);
        if (!*why) /* the block is in order: nobody has looked at it */
            why = "the passes that take it were left out (XM_SKIP, XM_STOP)";
    }
    return xm_fail(
        err, XM_UNSUPPORTED,
        "%%%u %s '%.120s' belongs to experts that nothing can run: %.140s%s%.140s", n->id,
        xm_op_info(n->op)->text, n->name, why, *fusion ? "; not fused because of " : "",
        fusion);
}

enum xm_status
xm_moe_ensure_lowered(struct xm_graph *g, struct xm_error *err)
{
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_MOE || n->op == XM_OP_MOE_COMPRESSED ||
            (n->op == XM_OP_TILE && xm_moe_feeds_experts(n)))
            return fail_left(g, n, err);
    }
    return XM_OK;
}
