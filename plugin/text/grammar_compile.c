/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles the trees of rules to one automaton.
 *
 *     measure   how many states each node takes; which references to a rule are recursive
 *     emit      the states, from the end of each rule to its beginning
 *     check     states from which no end can be reached match nothing; left recursion is refused
 */
#include <string.h>

#include "plugin/text/grammar_parts.h"
#include "runtime/util/utf8.h"

enum {
    /* largest rule or repetition, in states, that is expanded where it is used */
    EXPAND_MOST = 4096,
    EXPAND_ALL_MOST = 1 << 16, /* states of all expansions together */
    COPIES_MOST = 256,         /* most copies of an expanded repetition's child */
    TALL_MOST = 1500,          /* deepest nesting of nodes in an expanded rule */
    TALLEST = 4096 /* deepest nesting of any rule, because emit is recursive */
};

/* The result of measuring a node. */
struct measure {
    uint32_t size; /* states, at most EXPAND_MOST + 1            */
    uint16_t tall; /* depth of nested nodes                      */
    uint8_t state; /* enum visit                                 */
    bool calls;    /* of a RULE node: it is a call, not expanded */
};
enum visit { NEW, BEGUN, DONE };

/* A node that is the target of calls: a rule's body, or the child of a counted repetition. */
struct body {
    uint32_t node, start;
};

struct compiler {
    struct xm_grammar_tree *t;
    struct measure *measures; /* [t->n_nodes] */
    uint32_t *body_of;        /* [t->n_nodes] index in `bodies`; XM_NOWHERE: none */
    struct body *bodies;
    size_t n_bodies, bodies_capacity;
    struct xm_grammar_state *states;
    size_t n_states, states_capacity;
    uint32_t place; /* innermost marked node being emitted; 0: none */
    struct xm_error *err;
    enum xm_status failed;
};

/* ---- measure ---------------------------------------------------------------------- */

static uint32_t
n_below(const struct xm_grammar_tree *t, uint32_t node)
{
    return t->nodes[node].kind == XM_NODE_RULE ? 1 : t->nodes[node].n;
}

static uint32_t
below(const struct xm_grammar_tree *t, uint32_t node, uint32_t i)
{
    const struct xm_node_row *row = &t->nodes[node];
    return row->kind == XM_NODE_RULE ? t->rules[row->a].node
                                     : t->children[row->first + i];
}

static uint32_t
saturate(uint64_t n)
{
    return n > EXPAND_MOST ? EXPAND_MOST + 1 : (uint32_t)n;
}

/* Returns the number of copies of its child that expanding a repetition takes. */
static uint32_t
n_copies(const struct xm_node_row *row)
{
    return row->b != XM_UNBOUNDED ? row->b : row->a > 1 ? row->a : 1;
}

static bool
is_counted(const struct compiler *c, uint32_t node)
{
    const struct xm_node_row *row = &c->t->nodes[node];
    const uint32_t child = c->t->children[row->first];
    return n_copies(row) > COPIES_MOST ||
           (uint64_t)n_copies(row) * c->measures[child].size > EXPAND_MOST;
}

static void
measure_done(struct compiler *c, uint32_t node)
{
    const struct xm_node_row *row = &c->t->nodes[node];
    struct measure *m = &c->measures[node];
    uint64_t size = 1;
    uint32_t tall = 0;
    for (uint32_t i = 0; i < n_below(c->t, node); i++) {
        const struct measure *child = &c->measures[below(c->t, node, i)];
        size += child->size + (row->kind == XM_NODE_LIST ? 8 : 1);
        tall = child->tall > tall ? child->tall : tall;
    }
    if (row->kind == XM_NODE_RULE)
        m->calls |=
            size > EXPAND_MOST || tall > TALL_MOST || c->t->rules[row->a].is_called;
    if (row->kind == XM_NODE_REPEAT)
        size = is_counted(c, node) ? 1 : n_copies(row) * size;
    if (m->calls)
        size = 1, tall = 0;
    m->size = saturate(size);
    m->tall = (uint16_t)(tall + 1 < UINT16_MAX ? tall + 1 : UINT16_MAX);
    m->state = DONE;
}

/* Measures `root` and all nodes that it needs, depth first with an explicit stack. A reference to a
 * rule inside of the same rule becomes a call. */
static enum xm_status
measure_all(struct compiler *c, uint32_t root)
{
    struct step {
        uint32_t node, i;
    } *stack = NULL;
    size_t n = 0, capacity = 0;
    uint32_t next = root;
    while (true) {
        if (next != XM_NOWHERE) {
            struct step *grown = xm_grow(stack, &capacity, n + 1, sizeof(*grown));
            if (!grown)
                break;
            stack = grown;
            c->measures[next].state = BEGUN;
            stack[n++] = (struct step){next, 0};
        }
        struct step *top = &stack[n - 1];
        next = XM_NOWHERE;
        if (top->i < n_below(c->t, top->node)) {
            const uint32_t child = below(c->t, top->node, top->i++);
            if (c->measures[child].state == BEGUN)
                c->measures[top->node].calls = true;
            else if (c->measures[child].state == NEW)
                next = child;
        } else {
            measure_done(c, top->node);
            const bool is_too_tall = c->measures[top->node].tall > TALLEST;
            for (size_t i = n; is_too_tall && i-- > 0 && c->t->too_large_at == 0;)
                if (c->t->nodes[stack[i].node].is_place)
                    c->t->too_large_at = stack[i].node;
            if (--n == 0 || is_too_tall) {
                xm_free(stack);
                return is_too_tall
                           ? xm_fail(c->err, XM_UNSUPPORTED,
                                     "the grammar is nested deeper than %d levels",
                                     TALLEST)
                           : XM_OK;
            }
        }
    }
    xm_free(stack);
    return xm_no_memory(c->err, "a grammar");
}

/* ---- emit ------------------------------------------------------------------------- */

static uint32_t
add_state(struct compiler *c, struct xm_grammar_state s)
{
    if (c->failed == XM_OK && c->n_states >= XM_GRAMMAR_MOST_STATES) {
        c->t->too_large_at = c->place;
        c->failed = xm_fail(c->err, XM_UNSUPPORTED,
                            "the grammar is too large: it needs more than %d states",
                            XM_GRAMMAR_MOST_STATES);
    }
    if (c->failed != XM_OK)
        return 0;
    struct xm_grammar_state *grown =
        xm_grow(c->states, &c->states_capacity, c->n_states + 1, sizeof(*grown));
    if (!grown) {
        c->failed = xm_no_memory(c->err, "a grammar");
        return 0;
    }
    c->states = grown;
    c->states[c->n_states] = s;
    return (uint32_t)c->n_states++;
}

static uint32_t
add_split(struct compiler *c, uint32_t a, uint32_t b)
{
    return add_state(c, (struct xm_grammar_state){XM_STATE_SPLIT, a, b, 0, 0});
}

/* Adds the CALL state of a body. Its target is the body's index until all bodies are emitted. */
static uint32_t
add_call(struct compiler *c, uint32_t node, uint32_t least, uint32_t most, uint32_t next)
{
    if (c->body_of[node] == XM_NOWHERE) {
        struct body *grown =
            xm_grow(c->bodies, &c->bodies_capacity, c->n_bodies + 1, sizeof(*grown));
        if (!grown) {
            c->failed = xm_no_memory(c->err, "a grammar");
            return 0;
        }
        c->bodies = grown;
        c->bodies[c->n_bodies] = (struct body){node, XM_NOWHERE};
        c->body_of[node] = (uint32_t)c->n_bodies++;
    }
    return add_state(
        c, (struct xm_grammar_state){XM_STATE_CALL, next, c->body_of[node], least, most});
}

static uint32_t emit(struct compiler *c, uint32_t node, uint32_t next);

static bool
has_room(const struct compiler *c, uint32_t node)
{
    return c->n_states + c->measures[node].size <= EXPAND_ALL_MOST;
}

static uint32_t
emit_repeat(struct compiler *c, uint32_t node, uint32_t next)
{
    const struct xm_node_row row = c->t->nodes[node];
    const uint32_t child = c->t->children[row.first];
    const struct xm_node_row *unit = &c->t->nodes[child];
    uint32_t start = next, least = row.a;
    if (unit->kind == XM_NODE_RULE && !c->measures[child].calls)
        unit = &c->t->nodes[c->t->rules[unit->a].node];
    if (unit->kind == XM_NODE_UNIT)
        return add_state(
            c, (struct xm_grammar_state){XM_STATE_UNITS, next, unit->a, row.a, row.b});
    if (n_copies(&row) > 1 && (is_counted(c, node) || !has_room(c, node)))
        return add_call(c, child, row.a, row.b, next);
    if (row.b == XM_UNBOUNDED) {
        const uint32_t loop = add_split(c, 0, next);
        const uint32_t body = emit(c, child, loop);
        if (c->failed != XM_OK)
            return 0;
        c->states[loop].a = body;
        start = least == 0 ? loop : body;
        least -= least > 0;
    } else {
        for (uint32_t i = row.a; i < row.b && c->failed == XM_OK; i++)
            start = add_split(c, emit(c, child, start), next);
    }
    for (uint32_t i = 0; i < least && c->failed == XM_OK; i++)
        start = emit(c, child, start);
    return start;
}

/* Emits a list from its last child to its first. `first`: the state for the rest of the list if no
 * child is present so far; `later`: if some child is, so that a separator comes before the next. */
static uint32_t
emit_list(struct compiler *c, uint32_t node, uint32_t next)
{
    const struct xm_node_row row = c->t->nodes[node];
    uint32_t first = next, later = next;
    for (uint32_t i = row.n; i-- > 0 && c->failed == XM_OK;) {
        const uint32_t child = c->t->children[row.first + i];
        const uint8_t flags = c->t->flags[row.first + i];
        const bool repeats = flags & XM_LIST_REPEATS;
        const uint32_t loop = repeats ? add_split(c, 0, later) : later;
        const uint32_t item = emit(c, child, loop);
        const uint32_t separated = emit(c, row.a, item);
        if (c->failed != XM_OK)
            return 0;
        if (repeats)
            c->states[loop].a = separated;
        const bool optional = flags & XM_LIST_OPTIONAL;
        first = optional ? add_split(c, item, first) : item;
        later = repeats && optional ? loop
                : optional          ? add_split(c, separated, later)
                                    : separated;
    }
    return first;
}

static uint32_t
emit_kind(struct compiler *c, uint32_t node, uint32_t next)
{
    const struct xm_node_row row = c->t->nodes[node];
    uint32_t start = next;
    switch ((enum xm_node_kind)row.kind) {
    case XM_NODE_NEVER:
        return add_state(c, (struct xm_grammar_state){.kind = XM_STATE_NEVER});
    case XM_NODE_TEXT:
        return row.b == 0 ? next
                          : add_state(c, (struct xm_grammar_state){XM_STATE_TEXT, next, 0,
                                                                   row.a, row.b});
    case XM_NODE_UNIT:
        return add_state(c, (struct xm_grammar_state){XM_STATE_UNITS, next, row.a, 1, 1});
    case XM_NODE_TOKEN:
        return add_state(c, (struct xm_grammar_state){XM_STATE_TOKEN, next, row.a, 0, 0});
    case XM_NODE_RULE:
        return c->measures[node].calls || !has_room(c, node)
                   ? add_call(c, c->t->rules[row.a].node, 1, 1, next)
                   : emit(c, c->t->rules[row.a].node, next);
    case XM_NODE_ALL:
        for (uint32_t i = row.n; i-- > 0 && c->failed == XM_OK;)
            start = emit(c, c->t->children[row.first + i], start);
        return start;
    case XM_NODE_ANY:
        start = emit(c, c->t->children[row.first + row.n - 1], next);
        for (uint32_t i = row.n - 1; i-- > 0 && c->failed == XM_OK;)
            start = add_split(c, emit(c, c->t->children[row.first + i], next), start);
        return start;
    case XM_NODE_REPEAT:
        return emit_repeat(c, node, next);
    case XM_NODE_LIST:
        return emit_list(c, node, next);
    }
    return 0;
}

/* Returns the state from which `node`, followed by everything from state `next` on, is matched. */
static uint32_t
emit(struct compiler *c, uint32_t node, uint32_t next)
{
    const uint32_t outer = c->place;
    if (c->failed != XM_OK)
        return 0;
    c->place = c->t->nodes[node].is_place ? node : outer;
    const uint32_t start = emit_kind(c, node, next);
    c->place = outer;
    return start;
}

/* Emits all bodies; the first is the root's. */
static enum xm_status
emit_all(struct compiler *c, uint32_t root)
{
    add_state(c, (struct xm_grammar_state){.kind = XM_STATE_FINAL});
    if (c->failed == XM_OK)
        add_call(c, root, 1, 1, 0); /* adds state 1, which is unused */
    for (size_t i = 0; i < c->n_bodies && c->failed == XM_OK; i++) {
        const uint32_t start = emit(c, c->bodies[i].node, 0);
        c->bodies[i].start = start;
    }
    for (size_t i = 0; i < c->n_states && c->failed == XM_OK; i++)
        if (c->states[i].kind == XM_STATE_CALL)
            c->states[i].b = c->bodies[c->states[i].b].start;
    return c->failed;
}

/* ---- check ------------------------------------------------------------------------ */

/* Properties of states that depend on the properties of the states behind them. */
struct facts {
    bool *can_end;  /* some text leads from the state to the rule's end */
    bool *is_empty; /* the empty text does */
    uint32_t *stack;
    uint32_t *first,
        *from; /* states that depend on state s: from[first[s]..first[s+1]] */
};

static int
successors(const struct xm_grammar_state *s, uint32_t out[2])
{
    switch ((enum xm_state_kind)s->kind) {
    case XM_STATE_FINAL:
    case XM_STATE_NEVER:
        return 0;
    case XM_STATE_SPLIT:
    case XM_STATE_CALL:
        out[0] = s->a;
        out[1] = s->b;
        return 2;
    case XM_STATE_TEXT:
    case XM_STATE_UNITS:
    case XM_STATE_TOKEN:
        out[0] = s->a;
        return 1;
    }
    return 0;
}

static bool
find_users(const struct compiler *c, struct facts *f)
{
    uint32_t next[2];
    f->first = xm_calloc(c->n_states + 2, sizeof(*f->first));
    f->from = xm_calloc(2 * c->n_states + 1, sizeof(*f->from));
    f->stack = xm_calloc(c->n_states + 1, sizeof(*f->stack));
    f->can_end = xm_calloc(c->n_states, sizeof(*f->can_end));
    f->is_empty = xm_calloc(c->n_states, sizeof(*f->is_empty));
    if (!f->first || !f->from || !f->stack || !f->can_end || !f->is_empty)
        return false;
    for (size_t i = 0; i < c->n_states; i++)
        for (int k = successors(&c->states[i], next); k-- > 0;)
            f->first[next[k] + 2]++;
    for (size_t i = 2; i < c->n_states + 2; i++)
        f->first[i] += f->first[i - 1];
    for (size_t i = 0; i < c->n_states; i++)
        for (int k = successors(&c->states[i], next); k-- > 0;)
            f->from[f->first[next[k] + 1]++] = (uint32_t)i;
    return true;
}

static bool
can_end(const struct xm_grammar_state *s, const bool *known)
{
    switch ((enum xm_state_kind)s->kind) {
    case XM_STATE_FINAL:
        return true;
    case XM_STATE_NEVER:
        return false;
    case XM_STATE_SPLIT:
        return known[s->a] || known[s->b];
    case XM_STATE_CALL:
        return known[s->a] && (s->x == 0 || known[s->b]);
    case XM_STATE_TEXT:
    case XM_STATE_UNITS:
    case XM_STATE_TOKEN:
        return known[s->a];
    }
    return false;
}

static bool
is_empty(const struct xm_grammar_state *s, const bool *known)
{
    switch ((enum xm_state_kind)s->kind) {
    case XM_STATE_UNITS:
        return s->x == 0 && known[s->a];
    case XM_STATE_TEXT:
    case XM_STATE_TOKEN:
        return false;
    default:
        return can_end(s, known);
    }
}

/* Sets known[s] for all states for which the property holds, starting from those for which it holds
 * by itself and following the dependencies backwards. */
static void
spread(const struct compiler *c, struct facts *f, bool *known,
       bool (*holds)(const struct xm_grammar_state *, const bool *))
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_states; i++)
        if (holds(&c->states[i], known)) {
            known[i] = true;
            f->stack[n++] = (uint32_t)i;
        }
    while (n > 0) {
        const uint32_t s = f->stack[--n];
        for (uint32_t i = f->first[s]; i < f->first[s + 1]; i++) {
            const uint32_t user = f->from[i];
            if (known[user] || !holds(&c->states[user], known))
                continue;
            known[user] = true;
            f->stack[n++] = user;
        }
    }
}

static enum xm_status
check_counts(const struct compiler *c, const struct facts *f)
{
    for (size_t i = 0; i < c->n_states; i++) {
        const struct xm_grammar_state *s = &c->states[i];
        if (s->kind == XM_STATE_CALL && s->y > 1 && f->is_empty[s->b])
            return xm_fail(c->err, XM_UNSUPPORTED,
                           "the grammar repeats an item that can be empty up to %u "
                           "times, which is not supported",
                           s->y);
    }
    return XM_OK;
}

/* Adds to found[*n_found] the bodies that a body beginning at state `start` can call before it
 * reads anything. */
static void
add_leftmost(const struct compiler *c, const struct facts *f, uint32_t start, bool *seen,
             uint32_t *stack, uint32_t *found, size_t *n_found)
{
    size_t n = 0;
    uint32_t visited_from = start;
    stack[n++] = visited_from;
    while (n > 0) {
        const uint32_t at = stack[--n];
        const struct xm_grammar_state *s = &c->states[at];
        if (seen[at])
            continue;
        seen[at] = true;
        if (s->kind == XM_STATE_SPLIT) {
            stack[n++] = s->a;
            stack[n++] = s->b;
        } else if (s->kind == XM_STATE_UNITS && s->x == 0) {
            stack[n++] = s->a;
        } else if (s->kind == XM_STATE_CALL) {
            found[(*n_found)++] = s->b;
            if (s->x == 0 || f->is_empty[s->b])
                stack[n++] = s->a;
        }
    }
}

static struct xm_shown
name_of(const struct compiler *c, uint32_t node)
{
    for (size_t i = 0; i < c->t->n_rules; i++)
        if (c->t->rules[i].node == node)
            return xm_utf8_shown(
                xm_slice_of(c->t->bytes.text + c->t->rules[i].name, c->t->rules[i].n));
    return xm_utf8_shown(xm_slice_of("a repetition", 12));
}

/* Fails if a rule can begin with itself. Searches depth first in the graph of which body can begin
 * with a call of which: a body that is met again while it is still open (BEGUN) is
 * left-recursive. */
static enum xm_status
check_left_recursion(const struct compiler *c, const struct facts *f)
{
    enum xm_status status = XM_OK;
    bool *seen = xm_calloc(c->n_states, sizeof(*seen));
    uint32_t *stack = xm_calloc(2 * c->n_states + 2, sizeof(*stack));
    uint32_t *found = xm_calloc(c->n_states + 1, sizeof(*found));
    uint32_t *body_at = xm_calloc(c->n_states, sizeof(*body_at));
    uint32_t *first = xm_calloc(c->n_bodies + 1, sizeof(*first));
    uint8_t *visit = xm_calloc(c->n_bodies, sizeof(*visit));
    size_t n_found = 0, n = 0;
    if (!seen || !stack || !found || !body_at || !first || !visit)
        status = xm_no_memory(c->err, "a grammar");
    /* If two bodies begin with the same state, one index stands for both. */
    for (size_t i = 0; status == XM_OK && i < c->n_bodies; i++)
        body_at[c->bodies[i].start] = (uint32_t)i;
    for (size_t i = 0; status == XM_OK && i < c->n_bodies; i++) {
        first[i] = (uint32_t)n_found;
        add_leftmost(c, f, c->bodies[i].start, seen, stack, found, &n_found);
    }
    if (status == XM_OK)
        first[c->n_bodies] = (uint32_t)n_found;
    /* Depth first: stack[2i] is a body, stack[2i + 1] the index in `found` of its next callee. */
    for (size_t i = 0; status == XM_OK && i < c->n_bodies; i++) {
        if (visit[i] != NEW)
            continue;
        visit[i] = BEGUN;
        stack[0] = (uint32_t)i, stack[1] = first[i], n = 1;
        while (n > 0 && status == XM_OK) {
            uint32_t *top = &stack[2 * (n - 1)];
            if (top[1] == first[top[0] + 1]) {
                visit[top[0]] = DONE;
                n--;
                continue;
            }
            const uint32_t body = body_at[found[top[1]++]];
            if (visit[body] == BEGUN)
                status = xm_fail(c->err, XM_UNSUPPORTED,
                                 "the grammar is left-recursive: the rule '%s' can "
                                 "begin with itself",
                                 name_of(c, c->bodies[body].node).text);
            else if (visit[body] == NEW) {
                visit[body] = BEGUN;
                stack[2 * n] = body, stack[2 * n + 1] = first[body], n++;
            }
        }
    }
    xm_free(seen);
    xm_free(stack);
    xm_free(found);
    xm_free(body_at);
    xm_free(first);
    xm_free(visit);
    return status;
}

static enum xm_status
check(struct compiler *c)
{
    struct facts f = {0};
    enum xm_status s = XM_OK;
    if (!find_users(c, &f))
        s = xm_no_memory(c->err, "a grammar");
    if (s == XM_OK) {
        spread(c, &f, f.can_end, can_end);
        for (size_t i = 0; i < c->n_states; i++)
            if (!f.can_end[i])
                c->states[i] = (struct xm_grammar_state){.kind = XM_STATE_NEVER};
        spread(c, &f, f.is_empty, is_empty);
        if (!f.can_end[c->bodies[0].start])
            s = xm_fail(c->err, XM_INVALID, "the grammar matches no text");
    }
    if (s == XM_OK)
        s = check_counts(c, &f);
    if (s == XM_OK)
        s = check_left_recursion(c, &f);
    xm_free(f.can_end);
    xm_free(f.is_empty);
    xm_free(f.stack);
    xm_free(f.first);
    xm_free(f.from);
    return s;
}

/* ---- result ----------------------------------------------------------------------- */

static enum xm_status
compile(struct compiler *c, uint32_t root)
{
    const uint32_t node = c->t->rules[root].node;
    c->measures = xm_calloc(c->t->n_nodes + 1, sizeof(*c->measures));
    c->body_of = xm_malloc((c->t->n_nodes + 1) * sizeof(*c->body_of));
    if (!c->measures || !c->body_of)
        return xm_no_memory(c->err, "a grammar");
    memset(c->body_of, 0xff, (c->t->n_nodes + 1) * sizeof(*c->body_of));
    XM_TRY(measure_all(c, node));
    XM_TRY(emit_all(c, node));
    return check(c);
}

enum xm_status
xm_grammar_compile(struct xm_grammar_tree *t, uint32_t root, struct xm_grammar **out,
                   struct xm_error *err)
{
    struct compiler c = {.t = t, .err = err};
    *out = NULL;
    enum xm_status s = xm_tree_check(t, err);
    if (s == XM_OK)
        s = compile(&c, root);
    struct xm_grammar *g = s == XM_OK ? xm_calloc(1, sizeof(*g)) : NULL;
    if (s == XM_OK && !g)
        s = xm_no_memory(err, "a grammar");
    if (s == XM_OK) {
        *g = (struct xm_grammar){.states = c.states,
                                 .n_states = c.n_states,
                                 .start = c.bodies[0].start,
                                 .units = t->units,
                                 .unit_nodes = t->unit_nodes,
                                 .unit_edges = t->unit_edges,
                                 .n_units = t->n_units,
                                 .tokens = t->tokens,
                                 .n_tokens = t->n_tokens,
                                 .bytes = t->bytes.text};
        t->units = NULL;
        t->unit_nodes = NULL;
        t->unit_edges = NULL;
        t->tokens = NULL;
        t->bytes = (struct xm_strbuf){0};
        c.states = NULL;
        *out = g;
    }
    xm_free(c.states);
    xm_free(c.measures);
    xm_free(c.body_of);
    xm_free(c.bodies);
    return s;
}

void
xm_grammar_free(struct xm_grammar *g)
{
    if (!g)
        return;
    xm_free(g->states);
    xm_free(g->units);
    xm_free(g->unit_nodes);
    xm_free(g->unit_edges);
    xm_free(g->tokens);
    xm_free(g->bytes);
    xm_free(g);
}
