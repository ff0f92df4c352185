/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a graph, so that the copy can be rewritten.
 *
 * Nodes, operands, types and contents are new; texts and bytes of constants are those of the
 * source, which `owner` keeps alive. Dimensions are copied to the clone's own pool. Ids are kept,
 * so that messages about both graphs agree.
 */
#include <string.h>

#include "transformations/graph/graph.h"

struct clone {
    struct xm_graph *to;
    struct xm_value **values; /* values of the clone, by the id of the source's value */
};

static bool
clone_content(struct xm_graph *to, const struct xm_content *from, struct xm_content *out)
{
    *out = *from;
    if (!from->e)
        return true;
    struct xm_dim *e = xm_arena_alloc(&to->arena, (from->n + 1) * sizeof(*e));
    for (uint32_t i = 0; e && i < from->n; i++)
        e[i] = xm_dim_import(&to->dims, from->e[i]);
    out->e = e;
    return e != NULL;
}

static bool
clone_value(struct clone *c, const struct xm_value *from, struct xm_value *v)
{
    *v = (struct xm_value){.index = from->index,
                           .type = from->type,
                           .stored = from->stored,
                           .names = from->names,
                           .n_names = from->n_names};
    for (uint32_t i = 0; i < v->type.shape.rank; i++)
        v->type.shape.dim[i] = xm_dim_import(&c->to->dims, from->type.shape.dim[i]);
    return clone_content(c->to, &from->content, &v->content);
}

/* The clone's value for a value of the source; NULL: out of memory. */
static struct xm_value *
find_value(struct clone *c, const struct xm_value *from)
{
    return xm_is_none(from) ? xm_none(c->to) : c->values[from->node->id + from->index];
}

static bool
connect(struct clone *c, const struct xm_node *from, struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct xm_value *v = find_value(c, xm_in(from, i));
        if (!v)
            return false;
        xm_node_set_in(n, i, v);
    }
    return true;
}

static bool
clone_node(struct clone *c, const struct xm_node *from)
{
    struct xm_graph *g = c->to;
    struct xm_node *n = xm_arena_alloc(&g->arena, sizeof(*n));
    struct xm_use *in = xm_arena_alloc(&g->arena, (from->n_in + 1) * sizeof(*in));
    struct xm_value *out = xm_arena_alloc(&g->arena, (from->n_out + 1) * sizeof(*out));
    if (!n || !in || !out)
        return false;
    *n = *from;
    n->in = in;
    n->out = out;
    n->next = n->before = NULL;
    if (n->op == XM_OP_SHAPE_VALUE &&
        !clone_content(g, &from->attr.shape_value, &n->attr.shape_value))
        return false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (!clone_value(c, &from->out[i], &out[i]))
            return false;
        out[i].node = n;
        c->values[n->id + i] = &out[i];
    }
    if (!connect(c, from, n))
        return false;
    xm_node_move_before(g, n, NULL);
    return true;
}

static bool
clone_holdings(struct clone *c, const struct xm_graph *from, struct xm_mapping *owner)
{
    struct xm_graph *g = c->to;
    for (uint32_t i = 0; i < from->n_mappings; i++) {
        if (xm_graph_add_mapping(g, from->mappings[i]) != XM_OK)
            return false;
    }
    if (owner && xm_graph_add_mapping(g, owner) != XM_OK)
        return false;
    for (uint32_t i = 0; i < from->n_properties; i++) {
        const struct xm_property_text *p = &from->properties[i];
        if (xm_graph_add_property(g, p->key, p->value) != XM_OK)
            return false;
    }
    g->next_id = from->next_id;
    g->dims.n_fresh = from->dims.n_fresh;
    return true;
}

static bool
clone_all(struct clone *c, const struct xm_graph *from, struct xm_mapping *owner)
{
    if (!c->to || !c->values || !clone_holdings(c, from, owner))
        return false;
    xm_for_each_node(n, from)
    {
        if (!clone_node(c, n))
            return false;
    }
    return !c->to->dims.failed;
}

enum xm_status
xm_graph_clone(const struct xm_graph *g, struct xm_mapping *owner, struct xm_graph **out,
               struct xm_error *err)
{
    struct clone c = {.to = xm_graph_create(g->name)};
    c.values = xm_calloc(g->next_id, sizeof(struct xm_value *));
    bool done = clone_all(&c, g, owner);
    xm_free(c.values);
    if (!done) {
        xm_graph_destroy(c.to);
        return xm_no_memory(err, "a copy of graph %s", g->name);
    }
    c.to->counts_positions = g->counts_positions;
    *out = c.to;
    return XM_OK;
}
