/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of a graph: nodes in order, uses of values, mappings and properties.
 *
 * A node that was removed is in no list; its memory stays in the arena. The absent operand is a
 * node outside the list.
 */
#include "transformations/graph/graph.h"

#include <assert.h>
#include <string.h>

struct xm_graph *
xm_graph_create(const char *name)
{
    struct xm_graph *g = xm_calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->name = xm_arena_strdup(&g->arena, name ? name : "");
    if (!g->name) {
        xm_graph_destroy(g);
        return NULL;
    }
    return g;
}

void
xm_graph_destroy(struct xm_graph *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->n_mappings; i++)
        xm_mapping_unref(g->mappings[i]);
    xm_free(g->mappings);
    xm_free(g->properties);
    xm_dim_pool_free(&g->dims);
    xm_arena_free(&g->arena);
    xm_free(g);
}

/* ---- what the graph holds ---------------------------------------------------------- */

void
xm_mapping_ref(struct xm_mapping *m)
{
    xm_refs_add(&m->refs);
}

void
xm_mapping_unref(struct xm_mapping *m)
{
    if (m && xm_refs_drop(&m->refs) == 0)
        m->free(m);
}

struct heap_mapping {
    struct xm_mapping base;
    void *bytes;
};

static void
free_heap(struct xm_mapping *m)
{
    struct heap_mapping *h = (struct heap_mapping *)m;
    xm_free(h->bytes);
    xm_free(h);
}

struct xm_mapping *
xm_mapping_of_heap(void *bytes)
{
    struct heap_mapping *h = bytes ? xm_calloc(1, sizeof(*h)) : NULL;
    if (!h) {
        xm_free(bytes);
        return NULL;
    }
    *h = (struct heap_mapping){{.refs = 1, .free = free_heap}, bytes};
    return &h->base;
}

enum xm_status
xm_graph_add_mapping(struct xm_graph *g, struct xm_mapping *m)
{
    size_t bytes = (g->n_mappings + 1) * sizeof(struct xm_mapping *);
    struct xm_mapping **grown = xm_realloc(g->mappings, bytes);
    if (!grown)
        return xm_no_memory(&g->err, "a mapping of the graph");
    g->mappings = grown;
    g->mappings[g->n_mappings++] = m;
    xm_mapping_ref(m);
    return XM_OK;
}

enum xm_status
xm_graph_add_property(struct xm_graph *g, const char *key, const char *value)
{
    uint32_t n = g->n_properties;
    if ((n & (n - 1)) == 0) { /* the capacity is the next power of two */
        size_t bytes = (n ? n * 2 : 1) * sizeof(struct xm_property_text);
        struct xm_property_text *grown = xm_realloc(g->properties, bytes);
        if (!grown)
            return xm_no_memory(&g->err, "property %.80s", key);
        g->properties = grown;
    }
    struct xm_property_text p = {xm_arena_strdup(&g->arena, key),
                                 xm_arena_strdup(&g->arena, value)};
    if (!p.key || !p.value)
        return xm_no_memory(&g->err, "property %.80s", key);
    g->properties[g->n_properties++] = p;
    return XM_OK;
}

const char *
xm_graph_property(const struct xm_graph *g, const char *key)
{
    for (uint32_t i = 0; i < g->n_properties; i++)
        if (strcmp(g->properties[i].key, key) == 0)
            return g->properties[i].value;
    return NULL;
}

struct xm_value *
xm_none(struct xm_graph *g)
{
    if (!g->none) {
        struct xm_node *n = xm_arena_alloc(&g->arena, sizeof(*n));
        struct xm_value *v = xm_arena_alloc(&g->arena, sizeof(*v));
        if (!n || !v) {
            xm_no_memory(&g->err, "the absent operand");
            return NULL;
        }
        n->op = XM_OP_NONE;
        n->name = "";
        n->id = UINT32_MAX;
        n->out = v;
        n->n_out = 1;
        v->node = n;
        g->none = n;
    }
    return g->none->out;
}

/* ---- uses -------------------------------------------------------------------------- */

static void
use_unlink(struct xm_use *u)
{
    if (u->before)
        u->before->next = u->next;
    else
        u->value->uses = u->next;
    if (u->next)
        u->next->before = u->before;
    u->value->n_uses--;
    u->next = u->before = NULL;
}

static void
use_link(struct xm_use *u, struct xm_value *v)
{
    u->value = v;
    u->before = NULL;
    u->next = v->uses;
    if (v->uses)
        v->uses->before = u;
    v->uses = u;
    v->n_uses++;
}

void
xm_node_set_in(struct xm_node *n, uint32_t i, struct xm_value *v)
{
    struct xm_use *u = &n->in[i];
    assert(i < n->n_in && v);
    if (u->value) {
        u->value->node->heir = n;
        use_unlink(u);
    }
    u->user = n;
    use_link(u, v);
}

void
xm_value_replace(struct xm_graph *g, struct xm_value *from, struct xm_value *to)
{
    (void)g;
    if (from == to)
        return;
    if (from->node != to->node)
        from->node->heir = to->node;
    while (from->uses) {
        struct xm_use *u = from->uses;
        use_unlink(u);
        use_link(u, to);
    }
    if (to->n_names == 0) {
        to->names = from->names;
        to->n_names = from->n_names;
    }
}

/* ---- order and removal ------------------------------------------------------------- */

static bool
is_listed(const struct xm_graph *g, const struct xm_node *n)
{
    return n->before || g->first == n;
}

static void
unlink_node(struct xm_graph *g, struct xm_node *n)
{
    *(n->before ? &n->before->next : &g->first) = n->next;
    *(n->next ? &n->next->before : &g->last) = n->before;
    n->next = n->before = NULL;
    g->n_nodes--;
}

static void
link_before(struct xm_graph *g, struct xm_node *n, struct xm_node *place)
{
    n->next = place;
    n->before = place ? place->before : g->last;
    *(n->before ? &n->before->next : &g->first) = n;
    *(place ? &place->before : &g->last) = n;
    g->n_nodes++;
}

void
xm_node_move_before(struct xm_graph *g, struct xm_node *n, struct xm_node *place)
{
    if (n == place)
        return;
    if (is_listed(g, n))
        unlink_node(g, n);
    link_before(g, n, place);
}

static bool
is_unused(const struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i].n_uses)
            return false;
    return true;
}

/* The node that does n's work now: follows `heir` past nodes that were removed themselves. */
static struct xm_node *
living_heir(const struct xm_graph *g, const struct xm_node *n)
{
    enum { MOST = 64 };
    struct xm_node *heir = n->heir;
    for (int i = 0; heir && heir != n && !is_listed(g, heir); i++)
        heir = i < MOST ? heir->heir : NULL;
    return heir == n ? NULL : heir;
}

static void
leave_to_heir(struct xm_graph *g, struct xm_node *n)
{
    struct xm_node *heir = living_heir(g, n);
    if (!heir)
        return;
    struct xm_origin *origin = xm_arena_alloc(&g->arena, sizeof(*origin));
    if (!origin) {
        xm_no_memory(&g->err, "the origin of '%s'", heir->name);
        return;
    }
    *origin = (struct xm_origin){n, heir->origins};
    heir->origins = origin;
    for (uint32_t i = 0; i < n->n_in; i++)
        /* in case n was its last user and it is removed, too */
        n->in[i].value->node->heir = heir;
}

void
xm_node_remove(struct xm_graph *g, struct xm_node *n)
{
    assert(is_unused(n) && is_listed(g, n));
    leave_to_heir(g, n);
    unlink_node(g, n);
    for (uint32_t i = 0; i < n->n_in; i++)
        use_unlink(&n->in[i]);
}

static bool
is_dead(const struct xm_graph *g, const struct xm_node *n)
{
    return is_unused(n) && is_listed(g, n) && n->op != XM_OP_RESULT &&
           n->op != XM_OP_ASSIGN && n->op != XM_OP_PARAMETER && n->op != XM_OP_SEND;
}

bool
xm_node_remove_dead(struct xm_graph *g, struct xm_node *n)
{
    struct xm_node *pending =
        NULL; /* removed nodes whose operands are still to be checked; linked by `next` */
    if (!is_dead(g, n))
        return false;
    xm_node_remove(g, n);
    for (pending = n; pending;) {
        struct xm_node *done = pending;
        pending = done->next;
        done->next = NULL;
        for (uint32_t i = 0; i < done->n_in; i++) {
            struct xm_node *maker = done->in[i].value->node;
            if (!is_dead(g, maker))
                continue;
            xm_node_remove(g, maker);
            maker->next = pending;
            pending = maker;
        }
    }
    return true;
}

bool
xm_graph_remove_dead(struct xm_graph *g)
{
    bool any = false;
    for (struct xm_node *n = g->last, *before; n; n = before) {
        before = n->before;
        if (is_dead(g, n)) {
            xm_node_remove(g, n);
            any = true;
        }
    }
    return any;
}

/* ---- names and types --------------------------------------------------------------- */

struct xm_node *
xm_graph_parameter(const struct xm_graph *g, const char *name)
{
    xm_for_each_node(n, g) if (n->op == XM_OP_PARAMETER &&
                               strcmp(n->attr.name.name, name) == 0) return n;
    return NULL;
}

static bool
has_name(const struct xm_value *v, const char *name)
{
    for (uint32_t i = 0; i < v->n_names; i++)
        if (strcmp(v->names[i], name) == 0)
            return true;
    return false;
}

struct xm_value *
xm_graph_find_value(const struct xm_graph *g, const char *name)
{
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_PARAMETER && n->op != XM_OP_RESULT)
            continue;
        if (has_name(&n->out[0], name) || strcmp(n->attr.name.name, name) == 0 ||
            strcmp(n->name, name) == 0 ||
            (n->op == XM_OP_RESULT && has_name(xm_in(n, 0), name)))
            return &n->out[0];
    }
    return NULL;
}

bool
xm_shape_eq(const struct xm_shape *a, const struct xm_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!xm_dim_eq(a->dim[i], b->dim[i]))
            return false;
    return true;
}

bool
xm_shape_is_static(const struct xm_shape *s)
{
    for (uint32_t i = 0; i < s->rank; i++)
        if (!xm_dim_is_const(s->dim[i]))
            return false;
    return true;
}

struct xm_dim
xm_shape_elements(struct xm_dim_pool *p, const struct xm_shape *s)
{
    struct xm_dim n = xm_dim_const(1);
    for (uint32_t i = 0; i < s->rank; i++)
        n = xm_dim_mul(p, n, s->dim[i]);
    return n;
}

void
xm_type_print(const struct xm_type *t, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%s[", xm_element_text(t->element));
    for (uint32_t i = 0; i < t->shape.rank; i++) {
        xm_strbuf_add(out, i ? "," : "");
        xm_dim_print(t->shape.dim[i], out);
    }
    xm_strbuf_add(out, "]");
}

void
xm_value_print_type(const struct xm_value *v, struct xm_strbuf *out)
{
    xm_type_print(&v->type, out);
    if (v->stored != XM_DYNAMIC)
        xm_strbuf_printf(out, " as %s", xm_element_text(v->stored));
}
