/* SPDX-License-Identifier: Apache-2.0
 *
 *     result(concat(parameter p, x))   ->   assign(s, concat(read_value(s), x))
 *
 * where p is [batch,..,past,..] and the concat is along past: a KV cache that the caller passes in
 * and out, as in exports without states. The state is empty at first. A gather by an input [batch]
 * between p and concat, which reorders rows, is kept. All such caches of a graph are converted or
 * none, because their lengths would differ. Not done: caches that the graph crops.
 */
#include "transformations/passes/keep_past.h"

#include <string.h>

#include "transformations/graph/builder.h"
#include "transformations/graph/symbols.h"

struct cache {
    struct xm_node *parameter, *result;
    struct xm_value *whole; /* concat(past, x) */
};

/* The axis of a value [batch,..] whose size is the symbol `past`; UINT32_MAX: none. */
static uint32_t
past_axis(const struct xm_shape *s)
{
    if (s->rank < 2 || !xm_dim_is_symbol(s->dim[0], XM_SYMBOL_BATCH))
        return UINT32_MAX;
    for (uint32_t i = 1; i < s->rank; i++)
        if (xm_dim_is_symbol(s->dim[i], XM_SYMBOL_PAST))
            return i;
    return UINT32_MAX;
}

/* Finds the cache that a result returns; false: it is another result. */
static bool
find_cache(struct xm_node *result, struct cache *c)
{
    if (result->op != XM_OP_RESULT)
        return false;
    struct xm_value *whole = xm_in(result, 0);
    const struct xm_node *concat = whole->node;
    if (concat->op != XM_OP_CONCAT || concat->n_in != 2)
        return false;
    struct xm_value *past = xm_in(concat, 0);
    if (past->node->op == XM_OP_GATHER)
        past = xm_in(past->node, 0);
    const uint32_t rank = past->type.shape.rank, axis = past_axis(&past->type.shape);
    const int64_t along = concat->attr.axis.axis;
    *c = (struct cache){past->node, result, whole};
    return past->node->op == XM_OP_PARAMETER && axis != UINT32_MAX &&
           (along == axis || along + rank == axis);
}

static uint32_t
count_inputs(struct xm_graph *g)
{
    uint32_t n = 0;
    xm_for_each_node(p, g)
    {
        if (p->op == XM_OP_PARAMETER)
            n += past_axis(&p->out[0].type.shape) != UINT32_MAX;
    }
    return n;
}

/* The state's name, as tools that make models stateful choose it: the names of both tensors,
 * joined. */
static const char *
name_of(struct xm_graph *g, const struct cache *c)
{
    const struct xm_value *in = &c->parameter->out[0], *own = &c->result->out[0];
    const struct xm_value *out = own->n_names ? own : c->whole;
    return xm_arena_printf(&g->arena, "%s%s",
                           in->n_names ? in->names[0] : c->parameter->name,
                           out->n_names ? out->names[0] : c->result->name);
}

static bool
keep(struct xm_graph *g, const struct cache *c)
{
    struct xm_builder b = xm_builder_before(g, c->parameter),
                      end = xm_builder_before(g, c->result);
    const char *name = name_of(g, c);
    struct xm_value *state =
        name ? xm_read_value(&b, name, &c->parameter->out[0].type, xm_none(g)) : NULL;
    if (!state || !xm_assign(&end, name, c->whole))
        return false;
    xm_value_replace(g, &c->parameter->out[0], state);
    xm_node_remove(g, c->result);
    xm_node_remove(g, c->parameter);
    return true;
}

bool
xm_pass_keep_past(struct xm_graph *g)
{
    struct cache c;
    uint32_t n = 0, n_inputs = count_inputs(g);
    xm_for_each_node(r, g) n += find_cache(r, &c);
    if (n == 0 || n != n_inputs)
        return false;
    xm_for_each_node_safe(r, g)
    {
        if (find_cache(r, &c) && !keep(g, &c))
            break;
    }
    return true;
}
