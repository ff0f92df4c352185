/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a graph by layer: each rank runs a stretch of the graph's nodes and sends the values that
 * later ranks read.
 *
 *     rank 0: embeddings, layers 0 … 15 ──► send
 *     rank 1:                    receive ──► layers 16 … 31 ──► send
 *     rank 2:                                          receive ──► layers 32 … 47, vocabulary
 *     all:    results ◄────────────────────────────────────────────────── send
 *
 * The graph does not say which nodes are a layer. A cut is cheap where few bytes for each token
 * must be sent, which is between layers, where only the residual stream is passed on. So a rank
 * ends at the cheapest place near to where its share of the weights' bytes ends. Nodes that read
 * neither weights nor states (masks, tables of rope) are run by every rank that needs them. A state
 * is on the rank of all nodes that read and write it.
 */
#include <math.h>
#include <string.h>

#include "runtime/util/memory.h"
#include "transformations/graph/builder.h"
#include "transformations/split/split_plan.h"

/* Nodes that read larger constants are run by one rank only. */
#define MOST_COPIED_BYTES 65536
/* A rank's share may differ from the wanted share by this fraction of the smallest share. */
#define TOLERANCE 0.25

/* The nodes that are run by one rank only, in the graph's order. A place k is the boundary before
 * node k. */
struct cutting {
    struct xm_split *s;
    const struct xm_node **nodes;
    uint32_t *index;  /* by id: position of a node; UINT32_MAX: every rank runs it */
    uint64_t *before; /* [n + 1]: bytes of weights of the nodes before the place */
    /* [n + 1]: bytes for a token that are made before the place and read after it */
    int64_t *alive;
    uint32_t *is_inside; /* [n + 1]: > 0: some state is used on both sides */
    uint32_t n;          /* number of nodes */
};

/* ---- what a node is ------------------------------------------------------------------------- */

static uint64_t
weight_bytes(const struct xm_node *n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->n_in && n->op != XM_OP_GATHER; i++) {
        const struct xm_node *w = xm_in(n, i)->node;
        sum += w->op == XM_OP_WEIGHT ? xm_weight_bytes(&w->attr.weight) : 0;
    }
    return sum;
}

static bool
is_large(const struct xm_node *source)
{
    return source->op == XM_OP_WEIGHT ||
           (source->op == XM_OP_CONST && source->attr.data.n_bytes > MOST_COPIED_BYTES);
}

/* Whether every rank runs a copy of n. This has been decided for n's operands. */
static bool
is_everywhere(const struct cutting *c, const struct xm_node *n)
{
    const uint32_t flags = xm_op_info(n->op)->flags;
    if (n->op == XM_OP_RESULT || flags & XM_OPF_SOURCE)
        return true;
    if (flags & XM_OPF_STATE)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_node *of = xm_in(n, i)->node;
        if (of->op != XM_OP_NONE && (is_large(of) || c->index[of->id] != UINT32_MAX))
            return false;
    }
    return true;
}

static bool
is_variable(const struct xm_node *n)
{
    return n->op == XM_OP_READ_VALUE || n->op == XM_OP_ASSIGN;
}

/* The first node that uses a state of n; n itself if it is the first. */
static const struct xm_node *
first_of_state(const struct cutting *c, const struct xm_node *n)
{
    if (n->op == XM_OP_ATTENTION) {
        const struct xm_node *writer = xm_attention_writer(n);
        return writer ? writer : n;
    }
    for (uint32_t k = 0; is_variable(n) && k < c->index[n->id]; k++) {
        if (is_variable(c->nodes[k]) &&
            strcmp(c->nodes[k]->attr.name.name, n->attr.name.name) == 0)
            return c->nodes[k];
    }
    return n;
}

/* ---- finding places ------------------------------------------------------------------------- */

/* The position of v's last reader among the nodes; 0: none. */
static uint32_t
last_reader(const struct cutting *c, const struct xm_value *v)
{
    uint32_t last = 0;
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        const uint32_t at = c->index[u->user->id];
        last = at != UINT32_MAX && at > last ? at : last;
    }
    return last;
}

/* Lists the nodes. A result before the last node is refused, because ranks would wait for it before
 * their layers. */
static enum xm_status
list_nodes(struct cutting *c, struct xm_error *err)
{
    const struct xm_node *result = NULL;
    xm_for_each_node(n, c->s->g)
    {
        c->index[n->id] = UINT32_MAX;
        result = n->op == XM_OP_RESULT ? n : result;
        if (is_everywhere(c, n))
            continue;
        if (result)
            return xm_fail(err, XM_UNSUPPORTED,
                           "it is not split by layer: result '%s' comes before '%s'",
                           result->name, n->name);
        c->before[c->n + 1] = c->before[c->n] + weight_bytes(n);
        c->index[n->id] = c->n;
        c->nodes[c->n++] = n;
    }
    return XM_OK;
}

static void
find_alive(struct cutting *c)
{
    for (uint32_t k = 0; k < c->n; k++) {
        const struct xm_node *n = c->nodes[k];
        for (uint32_t i = 0; i < n->n_out; i++) {
            const uint32_t last = last_reader(c, &n->out[i]);
            for (uint32_t at = k + 1; at <= last; at++)
                c->alive[at] += (int64_t)xm_split_token_bytes(&n->out[i]);
        }
        const struct xm_node *first = first_of_state(c, n);
        for (uint32_t at = c->index[first->id] + 1; at <= k; at++)
            c->is_inside[at]++;
    }
}

static bool
is_better(const struct cutting *c, double wanted, double tolerance, uint32_t k,
          uint32_t than)
{
    const double miss[] = {fabs((double)c->before[k] - wanted),
                           fabs((double)c->before[than] - wanted)};
    const bool near[] = {miss[0] <= tolerance, miss[1] <= tolerance};
    if (near[0] != near[1])
        return near[0];
    if (near[0] && c->alive[k] != c->alive[than])
        return c->alive[k] < c->alive[than];
    return miss[0] != miss[1] ? miss[0] < miss[1] : c->alive[k] < c->alive[than];
}

/* Finds the place where rank `rank` begins, after `from`; 0: none. Each rank gets at least one node
 * with weights. */
static uint32_t
find_place(const struct cutting *c, uint32_t from, uint32_t rank, double wanted,
           double tolerance)
{
    uint32_t best = 0, left = 0;
    for (uint32_t k = c->n; k-- > from + 1;) {
        left += c->before[k + 1] > c->before[k];
        if (left < c->s->wish.ranks - rank || c->is_inside[k] ||
            c->before[k] == c->before[from])
            continue;
        if (!best || is_better(c, wanted, tolerance, k, best))
            best = k;
    }
    return best;
}

static enum xm_status
find_stages(struct cutting *c, struct xm_error *err)
{
    const struct xm_split *s = c->s;
    const double all = (double)c->before[c->n];
    double smallest = 1.0, share = 0.0;
    uint32_t from = 0;
    for (uint32_t r = 0; r < s->wish.ranks; r++)
        smallest = s->shares[r] < smallest ? s->shares[r] : smallest;
    xm_for_each_node(n, s->g) s->stage[n->id] =
        c->index[n->id] == UINT32_MAX ? XM_EVERY_RANK : 0;
    for (uint32_t r = 1; r < s->wish.ranks; r++) {
        share += s->shares[r - 1];
        from = find_place(c, from, r, share * all, TOLERANCE * smallest * all);
        if (!from)
            return xm_fail(err, XM_UNSUPPORTED,
                           "it is not split by layer over %u devices: there are too few "
                           "places to cut between its weights and states",
                           s->wish.ranks);
        for (uint32_t k = from; k < c->n; k++)
            s->stage[c->nodes[k]->id] = r;
    }
    return XM_OK;
}

/* ---- what is passed on ---------------------------------------------------------------------- */

/* The first reader of v on a rank; NULL: none. */
static const struct xm_node *
reader_on(const struct xm_split *s, const struct xm_value *v, uint32_t rank)
{
    const struct xm_node *first = NULL;
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        if (s->stage[u->user->id] == rank && (!first || u->user->id < first->id))
            first = u->user;
    }
    return first;
}

static enum xm_status
list_passed(struct xm_split *s, const struct xm_value *v, struct xm_error *err)
{
    struct xm_exchange e = {XM_EXCHANGE_PASS, v, NULL, xm_split_token_bytes(v)};
    for (uint32_t r = s->stage[v->node->id] + 1; r < s->wish.ranks; r++) {
        e.because = reader_on(s, v, r);
        if (e.because)
            XM_TRY(xm_split_note(s, &e, err));
    }
    return XM_OK;
}

static enum xm_status
list_exchanges(struct xm_split *s, struct xm_error *err)
{
    xm_for_each_node(n, s->g)
    {
        for (uint32_t i = 0; i < n->n_out && s->stage[n->id] != XM_EVERY_RANK; i++)
            XM_TRY(list_passed(s, &n->out[i], err));
        const struct xm_value *v = n->op == XM_OP_RESULT ? xm_in(n, 0) : NULL;
        const struct xm_exchange e = {XM_EXCHANGE_PASS, v, n,
                                      v ? xm_split_token_bytes(v) : 0};
        if (v && s->stage[v->node->id] != XM_EVERY_RANK && s->wish.ranks > 1)
            XM_TRY(xm_split_note(s, &e, err));
    }
    return XM_OK;
}

enum xm_status
xm_split_plan_layers(struct xm_split *s, struct xm_error *err)
{
    const size_t n = s->g->next_id + 1;
    struct cutting c = {.s = s};
    s->stage = xm_calloc(n, sizeof(*s->stage));
    c.nodes = xm_calloc(n, sizeof(const struct xm_node *));
    c.index = xm_calloc(n, sizeof(*c.index));
    c.before = xm_calloc(n + 1, sizeof(*c.before));
    c.alive = xm_calloc(n + 1, sizeof(*c.alive));
    c.is_inside = xm_calloc(n + 1, sizeof(*c.is_inside));
    enum xm_status status =
        s->stage && c.nodes && c.index && c.before && c.alive && c.is_inside
            ? list_nodes(&c, err)
            : xm_no_memory(err, "the split of a graph");
    if (status == XM_OK) {
        find_alive(&c);
        status = find_stages(&c, err);
    }
    if (status == XM_OK)
        status = list_exchanges(s, err);
    xm_free(c.nodes);
    xm_free(c.index);
    xm_free(c.before);
    xm_free(c.alive);
    xm_free(c.is_inside);
    return status;
}

/* ---- the graph of a rank -------------------------------------------------------------------- */

struct part {
    const struct xm_split *s;
    struct xm_collective *to;
    struct xm_graph *g;    /* graph of the rank, a copy with the same ids */
    struct xm_node **copy; /* copies by the id of the original */
    /* by number of a value: the value that was received from another rank; NULL: none */
    struct xm_value **arrived;
    struct xm_error *err;
};

static enum xm_status
failure(const struct part *p)
{
    const struct xm_error *e = &p->g->err;
    return xm_fail(p->err, e->status != XM_OK ? e->status : XM_INVALID, "%s", e->text);
}

static struct xm_value *
copy_of(const struct part *p, const struct xm_value *v)
{
    return &p->copy[v->node->id]->out[v->index];
}

/* Adds, before the rank's first node, receive nodes for all values of earlier ranks that it reads,
 * in the order in which those ranks send them. */
static enum xm_status
receive_all(struct part *p, struct xm_node *first)
{
    struct xm_builder b = xm_builder_before(p->g, first);
    xm_for_each_node(n, p->s->g)
    {
        const uint32_t stage = p->s->stage[n->id];
        for (uint32_t i = 0; i < n->n_out && stage < p->to->rank; i++) {
            if (!reader_on(p->s, &n->out[i], p->to->rank))
                continue;
            XM_TRY(xm_split_add_receive(&b, p->to, &n->out[i], stage,
                                        &p->arrived[n->id + i], p->err));
        }
    }
    return XM_OK;
}

/* Adds, after the rank's last node, send nodes for all values that later ranks read. */
static enum xm_status
send_all(struct part *p, struct xm_node *last)
{
    struct xm_builder b = xm_builder_before(p->g, last->next);
    xm_for_each_node(n, p->s->g)
    {
        for (uint32_t i = 0; i < n->n_out && p->s->stage[n->id] == p->to->rank; i++) {
            for (uint32_t r = p->to->rank + 1; r < p->to->ranks; r++) {
                if (reader_on(p->s, &n->out[i], r))
                    XM_TRY(
                        xm_split_add_send(&b, p->to, copy_of(p, &n->out[i]), r, p->err));
            }
        }
    }
    return XM_OK;
}

/* Makes a result available on every rank: the rank that has it sends it to the others. */
static enum xm_status
share_result(struct part *p, const struct xm_node *result)
{
    const struct xm_value *v = xm_in(result, 0);
    struct xm_node *copy = p->copy[result->id];
    struct xm_builder b = xm_builder_before(p->g, copy);
    const uint32_t stage = p->s->stage[v->node->id];
    for (uint32_t r = 0; r < p->to->ranks && stage == p->to->rank; r++) {
        if (r != stage)
            XM_TRY(xm_split_add_send(&b, p->to, copy_of(p, v), r, p->err));
    }
    if (stage == p->to->rank || stage == XM_EVERY_RANK)
        return XM_OK;
    struct xm_value *y;
    XM_TRY(xm_split_add_receive(&b, p->to, v, stage, &y, p->err));
    xm_node_set_in(copy, 0, y);
    return XM_OK;
}

/* If n runs on this rank: makes its copy read values of earlier ranks from the RECEIVE nodes. */
static void
rewire(struct part *p, const struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_in && p->s->stage[n->id] == p->to->rank; i++) {
        const struct xm_value *v = xm_in(n, i);
        struct xm_value *y = xm_is_none(v) ? NULL : p->arrived[v->node->id + v->index];
        if (y)
            xm_node_set_in(p->copy[n->id], i, y);
    }
}

static struct xm_value *
arrived(const struct xm_value *v, void *ctx, struct xm_error *err)
{
    (void)err;
    return ((const struct part *)ctx)->arrived[v->node->id + v->index];
}

static struct xm_value *
made_here(const struct xm_value *v, void *ctx, struct xm_error *err)
{
    const struct part *p = ctx;
    const uint32_t stage = p->s->stage[v->node->id];
    (void)err;
    return stage == p->to->rank || stage == XM_EVERY_RANK ? copy_of(p, v) : NULL;
}

static enum xm_status
convert(struct part *p)
{
    struct xm_node *first = NULL, *last = NULL;
    xm_for_each_node(n, p->g)
    {
        p->copy[n->id] = n;
        if (p->s->stage[n->id] != p->to->rank)
            continue;
        first = first ? first : n;
        last = n;
    }
    XM_TRY(receive_all(p, first));
    XM_TRY(send_all(p, last));
    xm_for_each_node(n, p->s->g)
    {
        rewire(p, n);
        if (n->op == XM_OP_RESULT)
            XM_TRY(share_result(p, n));
        else if (n->op == XM_OP_ASSIGN && p->s->stage[n->id] != p->to->rank)
            xm_node_remove(p->g, p->copy[n->id]);
    }
    XM_TRY(xm_split_show(p->s, p->g, arrived, made_here, p, p->err));
    (void)xm_graph_remove_dead(p->g);
    return xm_graph_infer(p->g) == XM_OK ? XM_OK : failure(p);
}

enum xm_status
xm_split_layers_part(const struct xm_split *s, struct xm_collective *c,
                     struct xm_mapping *owner, struct xm_graph **out,
                     struct xm_error *err)
{
    struct part p = {.s = s, .to = c, .err = err};
    const size_t n = s->g->next_id + 1;
    XM_TRY(xm_graph_clone(s->g, owner, &p.g, err));
    p.copy = xm_calloc(n, sizeof(struct xm_node *));
    p.arrived = xm_calloc(n, sizeof(struct xm_value *));
    const enum xm_status status =
        p.copy && p.arrived ? convert(&p) : xm_no_memory(err, "a rank's graph");
    xm_free(p.copy);
    xm_free(p.arrived);
    p.g->counts_positions = xm_split_has_state(s->g);
    if (status == XM_OK)
        *out = p.g;
    else
        xm_graph_destroy(p.g);
    return status;
}

uint64_t
xm_split_layers_bytes(const struct xm_split *s, uint32_t rank)
{
    uint64_t sum = 0;
    xm_for_each_node(n, s->g) sum += s->stage[n->id] == rank ? weight_bytes(n) : 0;
    return sum;
}
