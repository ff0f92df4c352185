/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate and up that are parts of one product [E,T,2I] by a weight that holds both: its even and odd
 * columns, or its halves, taken by slices or by a split.
 */
#include "transformations/passes/moe_block.h"
#include "transformations/passes/pass_util.h"

enum { LAST_AXIS = 2, RANK = 3 };

/* Columns first, first + step, … of a value. */
struct part {
    struct xm_value *of;
    int64_t first, step;
};

/* ---- what is there ------------------------------------------------------------------ */

static bool
is_slice(const struct xm_node *n, struct part *p)
{
    if (n->n_in != 5 || !xm_is_axis(xm_in(n, 4), RANK, LAST_AXIS) ||
        xm_value_const_ints(xm_in(n, 1), &p->first, 1) != 1 ||
        xm_value_const_ints(xm_in(n, 3), &p->step, 1) != 1)
        return false;
    if (p->first < 0)
        p->first += xm_last_dim(p->of);
    return p->step > 0;
}

static bool
is_part(const struct xm_value *v, struct part *p)
{
    const struct xm_node *n = v->node;
    *p = (struct part){.of = n->n_in ? xm_in(n, 0) : NULL, .first = 0, .step = 1};
    if (v->type.shape.rank != RANK || xm_last_dim(v) < 1 || !p->of ||
        xm_last_dim(p->of) != 2 * xm_last_dim(v))
        return false;
    if (n->op == XM_OP_SLICE)
        return is_slice(n, p);
    if ((n->op != XM_OP_SPLIT && n->op != XM_OP_VARIADIC_SPLIT) || n->n_out != 2 ||
        !xm_is_axis(xm_in(n, 1), RANK, LAST_AXIS))
        return false;
    p->first = v->index * xm_last_dim(v);
    return true;
}

static bool
are_at(const struct part *gate, const struct part *up, int64_t gate_first,
       int64_t up_first, int64_t step)
{
    return gate->first == gate_first && up->first == up_first && gate->step == step &&
           up->step == step;
}

/* Whether only gate and up read the product: by two slices or one split. */
static bool
is_product_theirs(const struct xm_value *gate, const struct xm_value *up,
                  const struct xm_value *both)
{
    return gate->n_uses == 1 && up->n_uses == 1 &&
           both->n_uses == (gate->node == up->node ? 1u : 2u);
}

enum xm_gate_up
xm_moe_form_of(const struct xm_value *gate, const struct xm_value *up)
{
    const int64_t inter = xm_last_dim(gate);
    struct part g, u;
    if (!is_part(gate, &g) || !is_part(up, &u) || g.of != u.of)
        return XM_GATE_UP_APART;
    return are_at(&g, &u, 0, 1, 2)       ? XM_GATE_UP_INTERLEAVED
           : are_at(&g, &u, 1, 0, 2)     ? XM_UP_GATE_INTERLEAVED
           : are_at(&g, &u, 0, inter, 1) ? XM_GATE_UP_STACKED
           : are_at(&g, &u, inter, 0, 1) ? XM_UP_GATE_STACKED
                                         : XM_GATE_UP_APART;
}

bool
xm_moe_is_gate_and_up(struct xm_match *m, const struct xm_value *gate,
                      const struct xm_value *up)
{
    m->why =
        "gate and up are neither the halves nor the alternate columns of one product";
    if (xm_moe_form_of(gate, up) == XM_GATE_UP_APART)
        return false;
    m->why = "operations other than gate and up read the first product of the experts";
    return is_product_theirs(gate, up, xm_in(gate->node, 0));
}

/* ---- making them -------------------------------------------------------------------- */

/* Takes `inter` columns of the product: first, first + step, … */
static struct xm_value *
slice(struct xm_builder *b, struct xm_value *both, int64_t first, int64_t step,
      int64_t inter)
{
    const int64_t bounds[] = {first, first + (inter - 1) * step + 1, step, LAST_AXIS};
    struct xm_value *in[5] = {both};
    for (int i = 0; i < 4; i++)
        in[i + 1] = xm_const_ints(b, XM_I64, &bounds[i], 1);
    return xm_op_build(b, XM_OP_SLICE, NULL, in, 5);
}

struct xm_value *
xm_moe_gate_of(struct xm_builder *b, const struct xm_moe_attr *a, struct xm_value *both)
{
    bool alternate =
        a->gate_up == XM_GATE_UP_INTERLEAVED || a->gate_up == XM_UP_GATE_INTERLEAVED;
    bool second =
        a->gate_up == XM_UP_GATE_INTERLEAVED || a->gate_up == XM_UP_GATE_STACKED;
    return slice(b, both, second ? (alternate ? 1 : a->inter) : 0, alternate ? 2 : 1,
                 a->inter);
}

struct xm_value *
xm_moe_up_of(struct xm_builder *b, const struct xm_moe_attr *a, struct xm_value *both)
{
    static const int exchanged[XM_GATE_UP_COUNT] = {
        [XM_GATE_UP_INTERLEAVED] = XM_UP_GATE_INTERLEAVED,
        [XM_UP_GATE_INTERLEAVED] = XM_GATE_UP_INTERLEAVED,
        [XM_GATE_UP_STACKED] = XM_UP_GATE_STACKED,
        [XM_UP_GATE_STACKED] = XM_GATE_UP_STACKED,
    };
    /* the place of up is that of gate in the exchanged form */
    struct xm_moe_attr other = *a;
    other.gate_up = exchanged[a->gate_up];
    return xm_moe_gate_of(b, &other, both);
}
