/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds results that show exchanged and inner values, with the same names in a rank's part and in
 * the whole graph, so that both can be compared.
 */
#include "runtime/util/memory.h"
#include "transformations/graph/builder.h"
#include "transformations/split/split_plan.h"

/* Returns the index of the first exchange of the value; n_exchanges: there is none. */
static size_t
find_exchange(const struct xm_split *s, const struct xm_value *v)
{
    size_t i = 0;
    while (i < s->n_exchanges && s->exchanges[i].value != v)
        i++;
    return i;
}

/* Returns whether the wish asks for v and v is the floating-point result of a step that has inputs.
 * Results, states and constants are not shown. */
static bool
is_inner(const struct xm_split *s, const struct xm_value *v)
{
    const struct xm_node *n = v->node;
    return s->wish.shows_inner && n->n_in > 0 && n->op != XM_OP_RESULT &&
           n->op != XM_OP_READ_VALUE && n->op != XM_OP_ASSIGN && !xm_split_is_source(v) &&
           xm_element_is_float(v->type.element);
}

/* Adds the result. It has a name of its own, because the value may have other names in a part. */
static enum xm_status
add_result(struct xm_graph *g, const char *kind, size_t i, const struct xm_value *v,
           struct xm_value *x, struct xm_error *err)
{
    struct xm_builder b = xm_builder_at_end(g);
    const char **names = xm_arena_alloc(&g->arena, sizeof(*names));
    const char *name = xm_arena_printf(&g->arena, "%s%zu" XM_SHOWN_BEHIND "%s %s", kind,
                                       i, xm_op_info(v->node->op)->text, v->node->name);
    struct xm_value *y = name && names ? xm_result(&b, name, x) : NULL;
    if (!y)
        return xm_no_memory(err, "the results of a graph");
    names[0] = name;
    y->names = names;
    y->n_names = 1;
    return XM_OK;
}

/* Adds a result for v if v is exchanged or an inner value, and `part` has it. A value that is
 * exchanged for a result of the model needs no second result. */
static enum xm_status
show(const struct xm_split *s, const struct xm_value *v, struct xm_graph *part,
     xm_split_copy_fn exchanged, xm_split_copy_fn inner, void *ctx, struct xm_error *err)
{
    const size_t i = find_exchange(s, v);
    const bool is_exchanged = i < s->n_exchanges;
    struct xm_error why = {0};
    if (is_exchanged ? s->exchanges[i].because->op == XM_OP_RESULT : !is_inner(s, v))
        return XM_OK;
    struct xm_value *x = (is_exchanged ? exchanged : inner)(v, ctx, &why);
    if (!x)
        return why.status == XM_OK ? XM_OK : xm_fail(err, why.status, "%s", why.text);
    return add_result(part, is_exchanged ? XM_SHOWN_EXCHANGE : XM_SHOWN_INNER,
                      is_exchanged ? i : v->node->id + v->index, v, x, err);
}

enum xm_status
xm_split_show(const struct xm_split *s, struct xm_graph *part, xm_split_copy_fn exchanged,
              xm_split_copy_fn inner, void *ctx, struct xm_error *err)
{
    if (!s->wish.shows_exchanges)
        return XM_OK;
    xm_for_each_node(n, s->g)
    {
        for (uint32_t i = 0; i < n->n_out; i++)
            XM_TRY(show(s, &n->out[i], part, exchanged, inner, ctx, err));
    }
    return XM_OK;
}

struct xm_value *
xm_split_copied(const struct xm_value *v, void *ctx, struct xm_error *err)
{
    (void)err;
    xm_for_each_node(n, (struct xm_graph *)ctx)
    {
        if (n->id == v->node->id)
            return &n->out[v->index];
    }
    return NULL;
}

enum xm_status
xm_split_whole(const struct xm_split *s, struct xm_mapping *owner, struct xm_graph **out,
               struct xm_error *err)
{
    struct xm_graph *g = NULL;
    XM_TRY(xm_graph_clone(s->g, owner, &g, err));
    const enum xm_status status =
        xm_split_show(s, g, xm_split_copied, xm_split_copied, g, err);
    if (status == XM_OK)
        *out = g;
    else
        xm_graph_destroy(g);
    return status;
}
