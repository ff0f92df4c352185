/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing convex sets on an order that holds for all of them.
 *
 * The graph with each set as one node has no cycle, so it has an order; it is kept as an array
 * of places. To join A and B, of which B reads A, only what stands between them matters: swept
 * backwards from B, it tells the ancestors of B. When one of them reads A, B would wait for
 * itself. Else they can all stand before A:
 *
 *     A  p  q  r  s  B      p, r ancestors of B      ->      p  r  AB  q  s  -
 */
#include "transformations/rewrite/convex.h"

#include <string.h>

enum { NOBODY = UINT32_MAX };

/* By the id of a node, which counts values; a set goes by the id of one of its members. */
struct xm_convex {
    const struct xm_convex_rules *rules;
    uint32_t n_places;
    struct xm_node **node; /* of an id                                               */
    struct xm_node **next; /* the set's next member, in a circle; NULL: is no member  */
    struct xm_value **source; /* of a passed node: what it is made of                 */
    uint32_t *reads;          /* of a value                                           */
    uint32_t *rank;           /* in the graph's order                                 */
    uint32_t *set;            /* that a node is, or is in                             */
    uint32_t *place;          /* of a set                                             */
    uint32_t *at;             /* by place: the set there, or NOBODY                   */
    uint32_t *region;         /* room for a part of it                                */
    bool *is_ancestor;        /* by place, while sets are joined                      */
};

/* ---- what the graph says -------------------------------------------------------------- */

struct xm_value *
xm_convex_source(const struct xm_convex *c, struct xm_value *v)
{
    struct xm_value *source = xm_is_none(v) ? NULL : c->source[v->node->id];
    return source ? source : v;
}

uint32_t
xm_convex_reads(const struct xm_convex *c, const struct xm_value *v)
{
    return c->reads[v->node->id + v->index];
}

/* It has a single result, and depends on nothing but its first operand. */
static bool
can_be_passed(const struct xm_node *n)
{
    bool can = n->n_out == 1 && n->n_in > 0 && !xm_is_none(xm_in(n, 0));
    for (uint32_t i = 1; can && i < n->n_in; i++)
        can = xm_op_info(xm_in(n, i)->node->op)->flags & XM_OPF_SOURCE;
    return can;
}

/* What is passed has no place: nothing reads it. */
static void
enter(struct xm_convex *c, struct xm_node *n)
{
    enum xm_convex_kind kind = c->rules->kind(n);
    if (kind == XM_CONVEX_PASSED && can_be_passed(n)) {
        c->source[n->id] = xm_convex_source(c, xm_in(n, 0));
        return;
    }
    c->node[n->id] = n;
    c->rank[n->id] = c->place[n->id] = c->n_places;
    c->set[n->id] = n->id;
    c->at[c->n_places++] = n->id;
    if (kind == XM_CONVEX_MEMBER)
        c->next[n->id] = n;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_convex_source(c, xm_in(n, i));
        if (!xm_is_none(v))
            c->reads[v->node->id + v->index]++;
    }
}

/* ---- members --------------------------------------------------------------------------- */

/* Adds the members of a set to a list that is kept in the graph's order. */
static uint32_t
add_members(const struct xm_convex *c, uint32_t set, struct xm_node **list, uint32_t n)
{
    struct xm_node *m = c->node[set];
    do {
        uint32_t i = n++;
        for (; i > 0 && c->rank[list[i - 1]->id] > c->rank[m->id]; i--)
            list[i] = list[i - 1];
        list[i] = m;
        m = c->next[m->id];
    } while (m != c->node[set]);
    return n;
}

static uint32_t
size_of(const struct xm_convex *c, uint32_t set)
{
    uint32_t n = 1;
    for (const struct xm_node *m = c->next[set]; m != c->node[set]; m = c->next[m->id])
        n++;
    return n;
}

uint32_t
xm_convex_members(const struct xm_convex *c, const struct xm_node *n,
                  struct xm_node *member[XM_CONVEX_MOST])
{
    return c->next[n->id] ? add_members(c, c->set[n->id], member, 0) : 0;
}

/* ---- joining --------------------------------------------------------------------------- */

/* Marks the places that what stands at `place` reads from, behind that of `a`. False: it reads
 * `a` itself without being `b`, or there is more to look at than is left. */
static bool
mark_operands(struct xm_convex *c, uint32_t place, uint32_t a, uint32_t b, uint32_t *left)
{
    uint32_t set = c->at[place];
    const struct xm_node *first = c->node[set], *n = first;
    do {
        for (uint32_t i = 0; i < n->n_in; i++) {
            const struct xm_value *v = xm_convex_source(c, xm_in(n, i));
            uint32_t from = xm_is_none(v) ? NOBODY : c->set[v->node->id];
            if (from != NOBODY && c->place[from] > c->place[a])
                c->is_ancestor[c->place[from]] = true;
            if ((from == a && set != b) || (*left)-- == 0)
                return false;
        }
        n = c->next[n->id] ? c->next[n->id] : first;
    } while (n != first);
    return true;
}

/* Whether nothing that `b` waits for reads `a`; if so, is_ancestor says what it waits for. */
static bool
is_convex(struct xm_convex *c, uint32_t a, uint32_t b)
{
    uint32_t first = c->place[a], last = c->place[b], left = XM_CONVEX_REACH;
    bool holds = last - first < XM_CONVEX_REACH;
    if (!holds)
        return false;
    memset(c->is_ancestor + first, 0, last - first + 1);
    c->is_ancestor[last] = true;
    for (uint32_t place = last; holds && place > first; place--) {
        if (c->is_ancestor[place])
            holds = mark_operands(c, place, a, b, &left);
    }
    return holds;
}

/* The ancestors of b, then a and b as one, then the rest. */
static void
reorder(struct xm_convex *c, uint32_t a, uint32_t b)
{
    uint32_t first = c->place[a], last = c->place[b], n = 0;
    for (uint32_t place = first + 1; place < last; place++) {
        if (c->is_ancestor[place])
            c->region[n++] = c->at[place];
    }
    c->region[n++] = a;
    for (uint32_t place = first + 1; place < last; place++) {
        if (!c->is_ancestor[place])
            c->region[n++] = c->at[place];
    }
    c->region[n++] = NOBODY;
    for (uint32_t i = 0; i < n; i++) {
        c->at[first + i] = c->region[i];
        if (c->region[i] != NOBODY)
            c->place[c->region[i]] = first + i;
    }
}

static void
unite(struct xm_convex *c, uint32_t a, uint32_t b)
{
    struct xm_node *behind_a = c->next[a], *m = c->node[b];
    do {
        c->set[m->id] = a;
        m = c->next[m->id];
    } while (m != c->node[b]);
    c->next[a] = c->next[b]; /* two circles become one */
    c->next[b] = behind_a;
}

/* b reads a. */
static void
try_to_join(struct xm_convex *c, uint32_t a, uint32_t b)
{
    struct xm_node *member[XM_CONVEX_MOST];
    uint32_t n = 0;
    if (a == b || size_of(c, a) + size_of(c, b) > c->rules->most || !is_convex(c, a, b))
        return;
    n = add_members(c, a, member, n);
    n = add_members(c, b, member, n);
    if (!c->rules->fits(c->rules->ctx, c, member, n))
        return;
    reorder(c, a, b);
    unite(c, a, b);
}

/* ---- all of it ------------------------------------------------------------------------- */

static bool
allocate(struct xm_convex *c, size_t n)
{
    c->node = xm_calloc(n, sizeof(struct xm_node *));
    c->next = xm_calloc(n, sizeof(struct xm_node *));
    c->source = xm_calloc(n, sizeof(struct xm_value *));
    c->reads = xm_calloc(n, sizeof(uint32_t));
    c->rank = xm_calloc(n, sizeof(uint32_t));
    c->set = xm_calloc(n, sizeof(uint32_t));
    c->place = xm_calloc(n, sizeof(uint32_t));
    c->at = xm_calloc(n, sizeof(uint32_t));
    c->region = xm_calloc(n, sizeof(uint32_t));
    c->is_ancestor = xm_calloc(n, sizeof(bool));
    return c->node && c->next && c->source && c->reads && c->rank && c->set && c->place &&
           c->at && c->region && c->is_ancestor;
}

struct xm_convex *
xm_convex_grow(struct xm_graph *g, const struct xm_convex_rules *rules)
{
    struct xm_convex *c = xm_calloc(1, sizeof(*c));
    if (!c || !allocate(c, (size_t)g->next_id + 1)) {
        xm_fail(&g->err, XM_NO_MEMORY, "out of memory for sets of nodes");
        xm_convex_destroy(c);
        return NULL;
    }
    c->rules = rules;
    xm_for_each_node(n, g) enter(c, n);
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; c->next[n->id] && i < n->n_in; i++) {
            const struct xm_value *v = xm_convex_source(c, xm_in(n, i));
            if (!xm_is_none(v) && c->next[v->node->id])
                try_to_join(c, c->set[v->node->id], c->set[n->id]);
        }
    }
    return c;
}

void
xm_convex_destroy(struct xm_convex *c)
{
    if (!c)
        return;
    xm_free(c->node);
    xm_free(c->next);
    xm_free(c->source);
    xm_free(c->reads);
    xm_free(c->rank);
    xm_free(c->set);
    xm_free(c->place);
    xm_free(c->at);
    xm_free(c->region);
    xm_free(c->is_ancestor);
    xm_free(c);
}
