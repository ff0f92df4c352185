/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the assignment of layouts for each node of a split graph.
 *
 * Nodes are decided in the graph's order, each by its own least cost. That ignores that a value may
 * be needed whole later. Therefore each class that was exchanged is afterwards tried without a
 * split, and stays so if the whole plan then takes less time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/memory.h"
#include "transformations/graph/evaluate.h"
#include "transformations/split/split_plan.h"

/* LOCAL_S: seconds of a small launch that only moves bytes on a rank. MESSAGE_S: least seconds of a
 * message, so that messages cost more even if the wish says that they cost nothing. */
#define LOCAL_S   1e-8
#define MESSAGE_S 1e-7

/* ---- classes --------------------------------------------------------------------------- */

uint32_t
xm_split_root(const struct xm_split *s, uint32_t c)
{
    while (s->classes[c].parent != c)
        c = s->classes[c].parent;
    return c;
}

static uint64_t
gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The first piece of rank `rank` when `units` pieces are divided by shares; every rank gets at
 * least one. */
static uint64_t
boundary(const struct xm_split *s, uint64_t units, uint32_t rank)
{
    double before = 0.0;
    uint64_t at = 0;
    for (uint32_t r = 0; r < rank; r++) {
        before += s->shares[r];
        const uint64_t wanted = (uint64_t)llround(before * (double)units);
        const uint64_t most = units - (s->wish.ranks - r - 1);
        at = wanted < at + 1 ? at + 1 : wanted > most ? most : wanted;
    }
    return rank == s->wish.ranks ? units : at;
}

void
xm_split_range(const struct xm_split *s, uint32_t c, uint64_t size, uint32_t rank,
               uint64_t *first, uint64_t *n)
{
    const uint64_t units = s->classes[xm_split_root(s, c)].units;
    *first = size / units * boundary(s, units, rank);
    *n = size / units * boundary(s, units, rank + 1) - *first;
}

/* ---- what a choice costs ------------------------------------------------------------------ */

/* One assignment that a node could take, and its cost. */
struct choice {
    double seconds;
    uint64_t units;      /* units of its class, joined with those of the operands */
    bool splits;         /* whether it splits any dimension */
    uint32_t joined[64]; /* classes of its operands */
    uint32_t n_joined;
};

static bool
is_product_operand(const struct xm_node *n, uint32_t i)
{
    const bool is_product = xm_op_info(n->op)->flags & XM_OPF_PRODUCT;
    return is_product && !xm_has_operand(xm_node_linearity(n, 0).carried, i);
}

/* Whether every rank must do the node with whole values: results, parameters, and states other than
 * attention's. */
static bool
is_always_whole(const struct xm_node *n)
{
    const uint32_t flags = xm_op_info(n->op)->flags;
    return n->op == XM_OP_RESULT || n->op == XM_OP_PARAMETER ||
           ((flags & XM_OPF_STATE) && n->op != XM_OP_ATTENTION);
}

/* Whether n converts to fewer bits. That must be done on the sum, not on summands. */
static bool
narrows(const struct xm_node *n)
{
    return n->op == XM_OP_CONVERT && xm_element_bits(n->out[0].type.element) <
                                         xm_element_bits(xm_in(n, 0)->type.element);
}

/* Whether n, reading operand i as summands, can give summands. */
static bool
carries(const struct xm_node *n, uint32_t i, struct xm_layout *in, struct xm_layout *out)
{
    if (is_always_whole(n) || narrows(n) || is_product_operand(n, i))
        return false;
    for (uint32_t k = 1; xm_node_layouts(n, k, in, out); k++) {
        bool is_so = in[i].kind == XM_PARTIAL;
        /* a node may read the value twice, as in x * x */
        for (uint32_t j = 0; j < n->n_in && is_so; j++)
            is_so = xm_in(n, j) != xm_in(n, i) || in[j].kind == XM_PARTIAL;
        if (is_so)
            return true;
    }
    return false;
}

/* The first reader of v that needs the sum; NULL: all readers can take summands. */
static const struct xm_node *
who_needs_the_sum(const struct xm_split *s, const struct xm_value *v,
                  struct xm_layout *in, struct xm_layout *out)
{
    const struct xm_node *first = NULL;
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        const uint32_t i = (uint32_t)(u - u->user->in);
        if ((s->nodes[u->user->id].is_whole || !carries(u->user, i, in, out)) &&
            (!first || u->user->id < first->id))
            first = u->user;
    }
    return first;
}

uint64_t
xm_split_token_bytes(const struct xm_value *v)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < v->type.shape.rank; d++)
        n *= xm_dim_is_const(v->type.shape.dim[d]) ? (uint64_t)v->type.shape.dim[d].n : 1;
    return n * sizeof(float);
}

static bool
is_sum(const struct xm_split *s, const struct xm_value *v)
{
    return xm_split_value(s, v)->kind == XM_PARTIAL;
}

/* Returns the bytes of the whole value v, for one token, in the type in which it is exchanged. */
static uint64_t
message_bytes(const struct xm_split *s, const struct xm_value *v)
{
    const uint64_t bytes = xm_split_token_bytes(v);
    return is_sum(s, v) && s->wish.halves_sums ? bytes / 2 : bytes;
}

static double
exchange_seconds(const struct xm_split *s, const struct xm_value *v)
{
    return MESSAGE_S + s->wish.link_latency_s +
           (double)message_bytes(s, v) / s->wish.link_rate;
}

/* Bytes of a weight, operand i, that are read for one token. */
static double
read_bytes(const struct xm_node *n, uint32_t i)
{
    const struct xm_node *w = xm_in(n, i)->node;
    if (w->op != XM_OP_WEIGHT || n->op == XM_OP_GATHER)
        return 0.0;
    const struct xm_weight *of = &w->attr.weight;
    const double all = (double)xm_weight_bytes(of);
    return xm_split_has_experts(n) && of->experts > 1
               ? all * (double)n->attr.moe.routing.top_k / (double)of->experts
               : all;
}

/* The fraction of operand i's bytes that the rank with the most of them reads. Which experts a
 * token chooses is treated as random: mean plus one standard deviation for the largest share. If
 * the wish is to cut by expert, it may be for memory, not for time, so the plain share is used. */
static double
largest_part(const struct xm_split *s, const struct xm_node *n, uint32_t i,
             const struct xm_layout *want)
{
    const double p = s->largest;
    if (want->kind != XM_SPLIT)
        return 1.0;
    if (s->wish.by_expert || !xm_split_cuts_experts(n, i, want))
        return p;
    const double most = p + sqrt(p * (1.0 - p) / (double)n->attr.moe.routing.top_k);
    return most < 1.0 ? most : 1.0;
}

/* Adds to the choice that dimension `dim` of v is cut in multiples of `grain`; false: it cannot be
 * cut. */
static bool
join_extent(struct choice *c, const struct xm_value *v, uint32_t dim, int64_t grain)
{
    if (dim >= v->type.shape.rank || grain < 1)
        return false;
    const struct xm_dim d = v->type.shape.dim[dim];
    if (!xm_dim_is_const(d) || d.n < 1 || d.n % grain != 0)
        return false;
    c->splits = true;
    c->units = gcd((uint64_t)(d.n / grain), c->units);
    return true;
}

static bool
join_class(const struct xm_split *s, struct choice *c, uint32_t of)
{
    const uint32_t root = xm_split_root(s, of);
    for (uint32_t i = 0; i < c->n_joined; i++) {
        if (c->joined[i] == root)
            return true;
    }
    if (c->n_joined == XM_ARRAY_LEN(c->joined))
        return false;
    c->joined[c->n_joined++] = root;
    c->units = gcd(s->classes[root].units, c->units);
    return true;
}

/* Adds the cost of having operand i, a value of the run, in the wanted layout; false: that is
 * impossible. */
static bool
take_value(const struct xm_split *s, const struct xm_node *n, uint32_t i,
           const struct xm_layout *want, struct choice *c)
{
    const struct xm_value *v = xm_in(n, i);
    const struct xm_split_value *have = xm_split_value(s, v);
    const bool is_whole = have->kind == XM_MIRRORED || have->is_made_whole;
    switch (want->kind) {
    case XM_MIRRORED:
        c->seconds += is_whole ? 0.0 : exchange_seconds(s, v);
        return true;
    case XM_SPLIT:
        if (have->kind == XM_SPLIT && have->dim == want->dim)
            return join_extent(c, v, want->dim, want->grain) &&
                   join_class(s, c, have->class_);
        c->seconds += LOCAL_S + (is_whole ? 0.0 : exchange_seconds(s, v));
        return join_extent(c, v, want->dim, want->grain);
    case XM_PARTIAL:
        if (is_product_operand(n, i) || narrows(n))
            return false;
        if (have->kind == XM_PARTIAL && !have->is_made_whole)
            return true;
        c->seconds += LOCAL_S + (is_whole ? 0.0 : exchange_seconds(s, v));
        return true;
    default:
        return false;
    }
}

static bool
take_operand(const struct xm_split *s, const struct xm_node *n, uint32_t i,
             const struct xm_layout *want, struct choice *c)
{
    const struct xm_value *v = xm_in(n, i);
    if (xm_is_none(v))
        return true;
    if (want->kind == XM_SIZES)
        return v->node->op == XM_OP_SHAPE_VALUE || v->node->op == XM_OP_CONST;
    if (!xm_split_is_source(v))
        return want->kind != XM_FIRST && take_value(s, n, i, want, c);
    if (want->kind == XM_FIRST && !xm_eval_may_lack(n->op, i))
        return false;
    const bool splits = want->kind == XM_SPLIT;
    c->seconds += read_bytes(n, i) * largest_part(s, n, i, want) / s->wish.read_rate;
    const bool can_cut =
        v->node->op != XM_OP_SHAPE_VALUE &&
        (v->node->op == XM_OP_WEIGHT || xm_element_bits(v->type.element) % 8 == 0);
    return !splits || (can_cut && join_extent(c, v, want->dim, want->grain));
}

/* Whether an attention that reads another's state splits its heads exactly as the node that writes
 * the state. */
static bool
meets_state(const struct xm_split *s, const struct xm_node *n, struct choice *c)
{
    const struct xm_node *writer =
        n->op == XM_OP_ATTENTION ? xm_attention_writer(n) : NULL;
    if (!writer || writer == n ||
        xm_dim_is(xm_in(writer, XM_ATTENTION_K)->type.shape.dim[2], 1))
        return true;
    const uint32_t of = s->nodes[writer->id].class_;
    return (of != XM_NO_CLASS) == c->splits && (!c->splits || join_class(s, c, of));
}

/* Whether the layouts cut experts in the way that the wish asks for. */
static bool
is_wished(const struct xm_split *s, const struct xm_node *n, const struct xm_layout *in)
{
    const struct xm_layout *down = &in[XM_MOE_W_DOWN];
    return !s->wish.by_expert || !xm_split_has_experts(n) || down->kind != XM_SPLIT ||
           xm_split_cuts_experts(n, XM_MOE_W_DOWN, down);
}

/* Computes the cost of a choice; false: it is not possible. */
static bool
weigh(const struct xm_split *s, const struct xm_node *n, const struct xm_layout *in,
      const struct xm_layout *out, struct choice *c)
{
    *c = (struct choice){.units = 0};
    if (!is_wished(s, n, in))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!take_operand(s, n, i, &in[i], c))
            return false;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (out[i].kind == XM_SPLIT &&
            !join_extent(c, &n->out[i], out[i].dim, out[i].grain))
            return false;
    }
    if (!meets_state(s, n, c))
        return false;
    return !c->splits || c->units >= s->wish.ranks;
}

/* ---- deciding ------------------------------------------------------------------------------ */

static enum xm_status
new_class(struct xm_split *s, const struct choice *c, uint32_t *out, struct xm_error *err)
{
    struct xm_split_class *list =
        xm_grow(s->classes, &s->classes_capacity, s->n_classes + 1, sizeof(*list));
    if (!list)
        return xm_no_memory(err, "the split of a graph");
    s->classes = list;
    *out = (uint32_t)s->n_classes++;
    s->classes[*out] = (struct xm_split_class){*out, c->units};
    for (uint32_t i = 0; i < c->n_joined; i++)
        s->classes[c->joined[i]].parent = *out;
    return XM_OK;
}

enum xm_status
xm_split_note(struct xm_split *s, const struct xm_exchange *e, struct xm_error *err)
{
    struct xm_exchange *list =
        xm_grow(s->exchanges, &s->exchanges_capacity, s->n_exchanges + 1, sizeof(*list));
    if (!list)
        return xm_no_memory(err, "the split of a graph");
    s->exchanges = list;
    s->exchanges[s->n_exchanges++] = *e;
    return XM_OK;
}

static enum xm_status
exchange(struct xm_split *s, const struct xm_value *v, const struct xm_node *because,
         struct xm_error *err)
{
    const struct xm_exchange e = {is_sum(s, v) ? XM_EXCHANGE_SUM : XM_EXCHANGE_PARTS, v,
                                  because, message_bytes(s, v)};
    XM_TRY(xm_split_note(s, &e, err));
    xm_split_value(s, v)->is_made_whole = true;
    return XM_OK;
}

/* Whether an operand must be exchanged to have this layout. */
static bool
needs_exchange(const struct xm_split_value *have, const struct xm_layout *want)
{
    if (have->kind == XM_MIRRORED || have->is_made_whole)
        return false;
    return want->kind != have->kind || (want->kind == XM_SPLIT && want->dim != have->dim);
}

static enum xm_status
decide(struct xm_split *s, const struct xm_node *n, uint32_t k, const struct choice *c,
       struct xm_layout *in, struct xm_layout *out, struct xm_error *err)
{
    struct xm_split_node *node = &s->nodes[n->id];
    (void)xm_node_layouts(n, k, in, out);
    node->assignment = k;
    node->class_ = XM_NO_CLASS;
    s->seconds += c->seconds;
    if (c->splits)
        XM_TRY(new_class(s, c, &node->class_, err));
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_in(n, i);
        if (!xm_is_none(v) && !xm_split_is_source(v) && in[i].kind != XM_SIZES &&
            needs_exchange(xm_split_value(s, v), &in[i]))
            XM_TRY(exchange(s, v, n, err));
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        *xm_split_value(s, &n->out[i]) = (struct xm_split_value){
            .kind = out[i].kind, .dim = out[i].dim, .class_ = node->class_};
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const struct xm_value *v = &n->out[i];
        if (xm_split_value(s, v)->kind != XM_PARTIAL)
            continue;
        const struct xm_node *because = who_needs_the_sum(s, v, in, out);
        if (because) {
            s->seconds += exchange_seconds(s, v);
            XM_TRY(exchange(s, v, because, err));
        }
    }
    return XM_OK;
}

/* Chooses for node n the first assignment of least cost. Assignment 0, all mirrored, is always
 * possible. */
static enum xm_status
choose(struct xm_split *s, const struct xm_node *n, struct xm_layout *in,
       struct xm_layout *out, struct xm_error *err)
{
    struct choice best = {.seconds = INFINITY}, c;
    uint32_t best_k = 0;
    const bool is_whole = is_always_whole(n) || s->nodes[n->id].is_whole;
    for (uint32_t k = 0; (k == 0 || !is_whole) && xm_node_layouts(n, k, in, out); k++) {
        if (weigh(s, n, in, out, &c) && c.seconds < best.seconds) {
            best = c;
            best_k = k;
        }
    }
    if (isinf(best.seconds))
        return xm_fail(
            err, XM_UNSUPPORTED,
            "'%s' reads a state whose heads another layer splits between devices",
            n->name);
    return decide(s, n, best_k, &best, in, out, err);
}

struct xm_layout *
xm_split_new_layouts(const struct xm_graph *g, struct xm_layout **in,
                     struct xm_layout **out)
{
    uint32_t most = 1;
    xm_for_each_node(n, g)
    {
        most = n->n_in > most ? n->n_in : most;
        most = n->n_out > most ? n->n_out : most;
    }
    *in = xm_calloc(2 * (size_t)most, sizeof(**in));
    *out = *in ? *in + most : NULL;
    return *in;
}

/* Decides for the whole graph from the start. */
static enum xm_status
plan_once(struct xm_split *s, struct xm_layout *in, struct xm_layout *out,
          struct xm_error *err)
{
    s->n_classes = s->n_exchanges = 0;
    s->seconds = 0.0;
    xm_for_each_node(n, s->g)
    {
        XM_TRY(choose(s, n, in, out, err));
    }
    return XM_OK;
}

/* ---- classes that are better whole ------------------------------------------------------- */

static void
set_whole(struct xm_split *s, const uint32_t *members, size_t n, bool is_whole)
{
    for (size_t i = 0; i < n; i++)
        s->nodes[members[i]].is_whole = is_whole;
}

/* Lists the nodes of the class of node `of`; returns their number. */
static size_t
find_members(const struct xm_split *s, const struct xm_node *of, uint32_t *members)
{
    size_t count = 0;
    const uint32_t root = xm_split_root(s, s->nodes[of->id].class_);
    xm_for_each_node(n, s->g)
    {
        const uint32_t c = s->nodes[n->id].class_;
        if (c != XM_NO_CLASS && xm_split_root(s, c) == root)
            members[count++] = n->id;
    }
    return count;
}

static bool
has_weights(const struct xm_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (xm_in(n, i)->node->op == XM_OP_WEIGHT)
            return true;
    }
    return false;
}

static enum xm_status
try_whole(struct xm_split *s, const struct xm_node *of, uint32_t *members,
          struct xm_layout *in, struct xm_layout *out, struct xm_error *err)
{
    const double before = s->seconds;
    const size_t n = find_members(s, of, members);
    set_whole(s, members, n, true);
    XM_TRY(plan_once(s, in, out, err));
    if (s->seconds < before)
        return XM_OK;
    set_whole(s, members, n, false);
    return plan_once(s, in, out, err);
}

static enum xm_status
mend(struct xm_split *s, struct xm_layout *in, struct xm_layout *out,
     struct xm_error *err)
{
    uint32_t *members = xm_calloc(s->g->next_id, sizeof(*members));
    bool *tried = xm_calloc(s->g->next_id, sizeof(*tried));
    enum xm_status status =
        members && tried ? XM_OK : xm_no_memory(err, "the split of a graph");
    for (const struct xm_node *n = s->g->first; n && status == XM_OK; n = n->next) {
        if (s->nodes[n->id].class_ == XM_NO_CLASS || tried[n->id] || !has_weights(n))
            continue;
        const size_t count = find_members(s, n, members);
        for (size_t i = 0; i < count; i++)
            tried[members[i]] = true;
        status = try_whole(s, n, members, in, out, err);
    }
    xm_free(members);
    xm_free(tried);
    return status;
}

/* ---- the plan ---------------------------------------------------------------------------- */

static enum xm_status
check_wish(const struct xm_split_wish *w, struct xm_error *err)
{
    if (w->ranks < 1 || w->ranks > XM_MOST_RANKS)
        return xm_fail(err, XM_INVALID, "a model is split over 1 to %d devices, found %u",
                       XM_MOST_RANKS, w->ranks);
    for (uint32_t r = 0; r < w->ranks && w->shares; r++) {
        if (!(w->shares[r] > 0.0) || !isfinite(w->shares[r]))
            return xm_fail(err, XM_INVALID, "the share of device %u must be above 0", r);
    }
    if (!(w->read_rate > 0.0) || !(w->link_rate > 0.0) || !(w->link_latency_s >= 0.0))
        return xm_fail(err, XM_INVALID, "the rates of memory and links must be above 0");
    return XM_OK;
}

/* ---- what a message may cost ------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Lists the time that each class with weights saves for a token, ascending; returns the number of
 * classes. list[n_classes]. */
static size_t
find_savings(const struct xm_split *s, double *list)
{
    size_t n_found = 0;
    xm_for_each_node(n, s->g)
    {
        const uint32_t c = s->nodes[n->id].class_;
        for (uint32_t i = 0; i < n->n_in && c != XM_NO_CLASS; i++)
            list[xm_split_root(s, c)] +=
                read_bytes(n, i) * (1.0 - s->largest) / s->wish.read_rate;
    }
    for (size_t c = 0; c < s->n_classes; c++) {
        if (list[c] > 0.0)
            list[n_found++] = list[c];
    }
    qsort(list, n_found, sizeof(*list), compare);
    return n_found;
}

static enum xm_status
price_messages(struct xm_split *s, struct xm_error *err)
{
    double *list = xm_calloc(s->n_classes + 1, sizeof(*list));
    if (!list)
        return xm_no_memory(err, "the split of a graph");
    const size_t n = find_savings(s, list);
    s->wish.link_latency_s = n ? list[n / 2] / 8 : 0.0;
    xm_free(list);
    return XM_OK;
}

static void
make_links_free(struct xm_split *s)
{
    s->wish.read_rate =
        1.0; /* times are bytes: the fixed costs are negligible             */
    s->wish.link_rate = INFINITY;
    s->wish.link_latency_s = 0.0;
}

static void
set_shares(struct xm_split *s, const double *given)
{
    double sum = 0.0;
    for (uint32_t r = 0; r < s->wish.ranks; r++)
        sum += given ? given[r] : 1.0;
    for (uint32_t r = 0; r < s->wish.ranks; r++) {
        s->shares[r] = (given ? given[r] : 1.0) / sum;
        s->largest = s->shares[r] > s->largest ? s->shares[r] : s->largest;
    }
    s->wish.shares = s->shares;
}

static enum xm_status
plan_layouts(struct xm_split *s, struct xm_layout *in, struct xm_layout *out,
             struct xm_error *err)
{
    if (s->wish.splits_all)
        make_links_free(s);
    XM_TRY(plan_once(s, in, out, err));
    if (s->wish.splits_all)
        XM_TRY(price_messages(s, err));
    return mend(s, in, out, err);
}

static enum xm_status
make_plan(struct xm_split *s, const struct xm_split_wish *wish, struct xm_error *err)
{
    struct xm_layout *in, *out, *both = xm_split_new_layouts(s->g, &in, &out);
    s->shares = xm_calloc(wish->ranks, sizeof(*s->shares));
    s->values = xm_calloc(s->g->next_id + 1, sizeof(*s->values));
    s->nodes = xm_calloc(s->g->next_id + 1, sizeof(*s->nodes));
    enum xm_status status = both && s->shares && s->values && s->nodes
                                ? XM_OK
                                : xm_no_memory(err, "the split of a graph");
    if (status == XM_OK)
        set_shares(s, wish->shares);
    if (status == XM_OK)
        status =
            wish->by_layer ? xm_split_plan_layers(s, err) : plan_layouts(s, in, out, err);
    xm_free(both);
    return status;
}

enum xm_status
xm_split_plan(const struct xm_graph *g, const struct xm_split_wish *wish,
              struct xm_split **out, struct xm_error *err)
{
    XM_TRY(check_wish(wish, err));
    struct xm_split *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return xm_no_memory(err, "the split of a graph");
    s->g = g;
    s->wish = *wish;
    const enum xm_status status = make_plan(s, wish, err);
    if (status == XM_OK)
        *out = s;
    else
        xm_split_free(s);
    return status;
}

void
xm_split_free(struct xm_split *s)
{
    if (!s)
        return;
    xm_free(s->shares);
    xm_free(s->values);
    xm_free(s->nodes);
    xm_free(s->classes);
    xm_free(s->exchanges);
    xm_free(s->stage);
    xm_free(s);
}

/* ---- what was decided -------------------------------------------------------------------- */

void
xm_split_layouts(const struct xm_split *s, const struct xm_node *n, struct xm_layout *in,
                 struct xm_layout *out)
{
    (void)xm_node_layouts(n, s->nodes[n->id].assignment, in, out);
}

const struct xm_exchange *
xm_split_exchanges(const struct xm_split *s, uint32_t *n)
{
    *n = (uint32_t)s->n_exchanges;
    return s->exchanges;
}
