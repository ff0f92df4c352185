/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes products of one value with several stored matrices one operation with several results: the
 * value is prepared once, and there is one launch.
 *
 *     x W0^T (+ b0),  x W1^T (+ b1),  x W2^T (+ b2)   ->   linear(x, W0, b0, W1, b1, W2, b2)
 *
 * At most three; a fourth begins another group. The device decides which formats of weights it can
 * run together (xm_caps). Not done: products with an addend.
 */
#include "transformations/pipeline.h"
#include "transformations/rewrite/linear_node.h"

struct group {
    struct xm_node *member[XM_LINEAR_SEGMENTS];
    struct xm_value *in[XM_LINEAR_N_IN];
    uint32_t n;
};

static uint32_t
operand_count(uint32_t segments)
{
    return XM_LINEAR_W + segments * XM_LINEAR_SEGMENT;
}

/* Adds n to the group if the device can run it together with the group's members. */
static void
try_to_add(struct xm_graph *g, const struct xm_caps *caps, struct group *group,
           struct xm_node *n)
{
    struct xm_value *in[XM_LINEAR_BIAS + 1];
    const char *why_not;
    xm_linear_operands(g, n, in);
    uint32_t at = operand_count(group->n);
    group->in[at] = in[XM_LINEAR_W];
    group->in[at + 1] = in[XM_LINEAR_BIAS];
    if (xm_can_run(caps, XM_OP_LINEAR, NULL, group->in, operand_count(group->n + 1),
                   &why_not))
        group->member[group->n++] = n;
}

/* Finds the group of n: n and later products that read the same value. */
static struct group
find_group(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *n)
{
    struct xm_value *x = xm_in(n, 0);
    struct group group = {.n = 0};
    group.in[XM_LINEAR_X] = x;
    group.in[XM_LINEAR_ADDEND] = xm_none(g);
    for (uint32_t left = x->n_uses; n && left > 0 && group.n < XM_LINEAR_SEGMENTS;
         n = n->next) {
        for (uint32_t i = 0; i < n->n_in; i++)
            left -= xm_in(n, i) == x;
        if (xm_is_linear(n) && xm_in(n, 0) == x && n->out[0].n_uses > 0)
            try_to_add(g, caps, &group, n);
    }
    return group;
}

static bool
fuse(struct xm_graph *g, const struct xm_caps *caps, struct xm_node *first)
{
    struct group group = find_group(g, caps, first);
    if (group.n < 2 || group.member[0] != first)
        return false;
    struct xm_builder b = xm_builder_before(g, first);
    struct xm_node *joined =
        xm_node_build(&b, XM_OP_LINEAR, NULL, group.in, operand_count(group.n));
    if (!joined)
        return false;
    for (uint32_t i = 0; i < group.n; i++)
        xm_value_replace(g, &group.member[i]->out[0], &joined->out[i]);
    return true;
}

bool
xm_pass_fuse_linear_siblings(struct xm_graph *g, const struct xm_caps *caps)
{
    bool any = false;
    xm_for_each_node(n, g)
    {
        if (xm_is_linear(n) && n->out[0].n_uses > 0 && xm_in(n, 0)->n_uses > 1)
            any |= fuse(g, caps, n);
        if (g->err.status != XM_OK)
            return any;
    }
    if (any) {
        xm_graph_remove_dead(g);
        xm_graph_sort(g, &g->err); /* weights may follow their first reader       */
    }
    return any;
}
