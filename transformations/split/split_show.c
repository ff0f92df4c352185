/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns exchanged values as results, in a rank's part and in the whole graph alike, so that they
 * can be compared.
 */
#include "runtime/util/memory.h"
#include "transformations/graph/builder.h"
#include "transformations/split/split_plan.h"

/* Whether exchange i is shown: a value that is sent to several ranks is shown once, and a value
 * that becomes a result is a result already. */
static bool
is_shown(const struct xm_split *s, size_t i)
{
    bool is_first = s->exchanges[i].because->op != XM_OP_RESULT;
    for (size_t k = 0; k < i; k++)
        is_first &= s->exchanges[k].value != s->exchanges[i].value;
    return is_first;
}

/* Adds the result. It has a name of its own, because the value may have other names in a part. */
static enum xm_status
add_result(struct xm_graph *g, size_t i, const struct xm_exchange *e, struct xm_value *x,
           struct xm_error *err)
{
    struct xm_builder b = xm_builder_at_end(g);
    const char **names = xm_arena_alloc(&g->arena, sizeof(*names));
    const char *name =
        xm_arena_printf(&g->arena, XM_SHOWN_EXCHANGE "%zu" XM_SHOWN_BEHIND "%s %s", i,
                        xm_op_info(e->value->node->op)->text, e->value->node->name);
    struct xm_value *y = name && names ? xm_result(&b, name, x) : NULL;
    if (!y)
        return xm_no_memory(err, "the results of a graph");
    names[0] = name;
    y->names = names;
    y->n_names = 1;
    return XM_OK;
}

enum xm_status
xm_split_show(const struct xm_split *s, struct xm_graph *part,
              struct xm_value *(*copy_of)(const struct xm_value *v, void *ctx), void *ctx,
              struct xm_error *err)
{
    for (size_t i = 0; i < s->n_exchanges && s->wish.shows_exchanges; i++) {
        struct xm_value *x = is_shown(s, i) ? copy_of(s->exchanges[i].value, ctx) : NULL;
        if (x)
            XM_TRY(add_result(part, i, &s->exchanges[i], x, err));
    }
    return XM_OK;
}

/* The value of the copied graph that stands for v: copies keep ids. */
static struct xm_value *
copied(const struct xm_value *v, void *ctx)
{
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
    const enum xm_status status = xm_split_show(s, g, copied, g, err);
    if (status == XM_OK)
        *out = g;
    else
        xm_graph_destroy(g);
    return status;
}
