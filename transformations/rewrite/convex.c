/* SPDX-License-Identifier: Apache-2.0
 *
 * Grows convex sets in a topological order of the sets.
 *
 * If each set counts as one node, the graph has no cycle, so it has a topological order, which is
 * kept as an array of places. To join A and B, where B reads A, only the places between them
 * matter: a sweep backwards from B marks the ancestors of B. If a marked one reads A, then B would
 * depend on itself by way of A, and the join is refused. Else all ancestors can be moved before
 * A:
 *
 *     A  p  q  r  s  B      p, r ancestors of B      ->      p  r  AB  q  s  -
 */
#include "transformations/rewrite/convex.h"

enum { NOBODY = UINT32_MAX };

/* Data of a node, by its id; also of a set, whose number is the id of one of its members. */
struct entry {
    /* NULL: the node is passed, or the id is that of another result */
    struct xm_node *node;
    struct xm_node *next;    /* next member of the set, circular; NULL: not a member   */
    struct xm_value *source; /* for a passed node: the value that it is made of        */
    uint32_t reads;          /* reads of the value                                     */
    uint32_t rank;           /* position in the graph's order                          */
    uint32_t set;            /* the set that the node is or is in                      */
    uint32_t place, size;    /* for a set: its place, number of members                */
};

struct place {
    uint32_t set;     /* set at this place, or NOBODY                  */
    uint32_t next;    /* set that it will have; used while sets are joined */
    bool is_ancestor; /* as `next`: it is an ancestor of B             */
};

struct xm_convex {
    struct xm_arena arena;
    const struct xm_convex_rules *rules;
    struct entry *of;
    struct place *at;
    uint32_t n_places;
};

/* ---- what the graph says -------------------------------------------------------------- */

struct xm_value *
xm_convex_source(const struct xm_convex *c, struct xm_value *v)
{
    struct xm_value *source = xm_is_none(v) ? NULL : c->of[v->node->id].source;
    return source ? source : v;
}

uint32_t
xm_convex_reads(const struct xm_convex *c, const struct xm_value *v)
{
    return c->of[v->node->id + v->index].reads;
}

/* Whether n may be passed: it has one result and depends on its first operand only. */
static bool
can_be_passed(const struct xm_node *n)
{
    bool can = n->n_out == 1 && n->n_in > 0 && !xm_is_none(xm_in(n, 0));
    for (uint32_t i = 1; can && i < n->n_in; i++)
        can = xm_op_info(xm_in(n, i)->node->op)->flags & XM_OPF_SOURCE;
    return can;
}

/* Enters a node. A passed node gets no place, because no set reads it. */
static void
enter(struct xm_convex *c, struct xm_node *n)
{
    enum xm_convex_kind kind = c->rules->kind(n);
    struct entry *e = &c->of[n->id];
    if (kind == XM_CONVEX_PASSED && can_be_passed(n)) {
        e->source = xm_convex_source(c, xm_in(n, 0));
        return;
    }
    e->node = n;
    e->next = kind == XM_CONVEX_MEMBER ? n : NULL;
    e->rank = e->place = c->n_places;
    e->set = n->id;
    e->size = 1;
    c->at[c->n_places++].set = n->id;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_convex_source(c, xm_in(n, i));
        if (!xm_is_none(v))
            c->of[v->node->id + v->index].reads++;
    }
}

/* ---- members --------------------------------------------------------------------------- */

/* Adds the members of a set to a list in the graph's order; returns its new length. */
static uint32_t
add_members(const struct xm_convex *c, uint32_t set, struct xm_node **list, uint32_t n)
{
    struct xm_node *m = c->of[set].node;
    do {
        uint32_t i = n++;
        for (; i > 0 && c->of[list[i - 1]->id].rank > c->of[m->id].rank; i--)
            list[i] = list[i - 1];
        list[i] = m;
        m = c->of[m->id].next;
    } while (m != c->of[set].node);
    return n;
}

uint32_t
xm_convex_members(const struct xm_convex *c, const struct xm_node *n,
                  struct xm_node *member[XM_CONVEX_MOST])
{
    return c->of[n->id].next ? add_members(c, c->of[n->id].set, member, 0) : 0;
}

/* ---- joining --------------------------------------------------------------------------- */

/* Marks the places after that of `a` which the set at `place` reads. False: that set reads `a` and
 * is not `b`, or too many operands have been examined. */
static bool
mark_operands(struct xm_convex *c, uint32_t place, uint32_t a, uint32_t b, uint32_t *left)
{
    uint32_t set = c->at[place].set;
    const struct xm_node *first = c->of[set].node, *n = first;
    do {
        for (uint32_t i = 0; i < n->n_in; i++) {
            const struct xm_value *v = xm_convex_source(c, xm_in(n, i));
            uint32_t from = xm_is_none(v) ? NOBODY : c->of[v->node->id].set;
            if (from != NOBODY && c->of[from].place > c->of[a].place)
                c->at[c->of[from].place].is_ancestor = true;
            if ((from == a && set != b) || (*left)-- == 0)
                return false;
        }
        n = c->of[n->id].next ? c->of[n->id].next : first;
    } while (n != first);
    return true;
}

/* Whether no ancestor of `b` reads `a`; marks the ancestors of b. */
static bool
is_convex(struct xm_convex *c, uint32_t a, uint32_t b)
{
    uint32_t first = c->of[a].place, last = c->of[b].place, left = XM_CONVEX_REACH;
    bool holds = last - first < XM_CONVEX_REACH;
    for (uint32_t place = first; holds && place <= last; place++)
        c->at[place].is_ancestor = place == last;
    for (uint32_t place = last; holds && place > first; place--) {
        if (c->at[place].is_ancestor)
            holds = mark_operands(c, place, a, b, &left);
    }
    return holds;
}

/* Reorders the places between a and b: ancestors of b, then a and b as one, then the others. */
static void
reorder(struct xm_convex *c, uint32_t a, uint32_t b)
{
    uint32_t first = c->of[a].place, last = c->of[b].place, n = first;
    for (uint32_t place = first + 1; place < last; place++) {
        if (c->at[place].is_ancestor)
            c->at[n++].next = c->at[place].set;
    }
    c->at[n++].next = a;
    for (uint32_t place = first + 1; place < last; place++) {
        if (!c->at[place].is_ancestor)
            c->at[n++].next = c->at[place].set;
    }
    c->at[n].next = NOBODY;
    for (uint32_t place = first; place <= last; place++) {
        c->at[place].set = c->at[place].next;
        if (c->at[place].set != NOBODY)
            c->of[c->at[place].set].place = place;
    }
}

static void
unite(struct xm_convex *c, uint32_t a, uint32_t b)
{
    struct xm_node *behind_a = c->of[a].next, *m = c->of[b].node;
    do {
        c->of[m->id].set = a;
        m = c->of[m->id].next;
    } while (m != c->of[b].node);
    c->of[a].next = c->of[b].next; /* joins the two circular lists */
    c->of[b].next = behind_a;
    c->of[a].size += c->of[b].size;
}

/* Joins sets a and b, where b reads a, if the rules allow it. */
static void
try_to_join(struct xm_convex *c, uint32_t a, uint32_t b)
{
    struct xm_node *member[XM_CONVEX_MOST];
    if (a == b || c->of[a].size + c->of[b].size > c->rules->most || !is_convex(c, a, b))
        return;
    uint32_t n = add_members(c, b, member, add_members(c, a, member, 0));
    if (!c->rules->fits(c->rules->ctx, c, member, n))
        return;
    reorder(c, a, b);
    unite(c, a, b);
}

/* ---- all of it ------------------------------------------------------------------------- */

struct xm_convex *
xm_convex_grow(struct xm_graph *g, const struct xm_convex_rules *rules)
{
    struct xm_arena arena = {0};
    struct xm_convex *c = xm_arena_alloc(&arena, sizeof(*c));
    struct entry *of = xm_arena_alloc(&arena, ((size_t)g->next_id + 1) * sizeof(*of));
    struct place *at = xm_arena_alloc(&arena, ((size_t)g->n_nodes + 1) * sizeof(*at));
    if (!c || !of || !at) {
        xm_no_memory(&g->err, "sets of nodes");
        xm_arena_free(&arena);
        return NULL;
    }
    *c = (struct xm_convex){arena, rules, of, at, 0};
    xm_for_each_node(n, g) enter(c, n);
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; of[n->id].next && i < n->n_in; i++) {
            const struct xm_value *v = xm_convex_source(c, xm_in(n, i));
            if (!xm_is_none(v) && of[v->node->id].next)
                try_to_join(c, of[v->node->id].set, of[n->id].set);
        }
    }
    return c;
}

void
xm_convex_destroy(struct xm_convex *c)
{
    struct xm_arena arena = c ? c->arena : (struct xm_arena){0};
    xm_arena_free(&arena);
}
