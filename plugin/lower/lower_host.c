/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering to host steps: nodes without a kernel, and nodes without sizes that can be planned.
 *
 * Sizes that depend on data (the number of rows that an expert gets, say) cannot be planned. Nodes
 * that are connected by values of such sizes form a region. A region becomes one host step, whose
 * operands and results all have sizes that can be planned. The step is added where its first result
 * is needed, or else at the region's last node. So nearly every graph can run: slowly, but in
 * bounded memory, because weights are read row by row.
 */
#include "plugin/lower/lower.h"

#include "runtime/util/log.h"
#include "transformations/graph/evaluate.h"

/* ---- regions: union-find over nodes ---- */

static uint32_t
find_region(const struct xm_lower *l, uint32_t id)
{
    while (l->region[id] != id) {
        l->region[id] = l->region[l->region[id]];
        id = l->region[id];
    }
    return id;
}

static bool
has_unknown_size(const struct xm_value *v)
{
    for (uint32_t i = 0; i < v->type.shape.rank; i++) {
        if (xm_dim_is_unknown(v->type.shape.dim[i]))
            return true;
    }
    return false;
}

static void
join_nodes(struct xm_lower *l, const struct xm_node *a, const struct xm_node *b)
{
    if (l->region[a->id] == XM_NO_VALUE)
        l->region[a->id] = a->id;
    if (l->region[b->id] == XM_NO_VALUE)
        l->region[b->id] = b->id;
    l->region[find_region(l, a->id)] = find_region(l, b->id);
}

/* Joins n with the nodes whose values of unknown size it reads. RESULT nodes stay outside, because
 * the sizes of a program's outputs must be known. */
static void
visit(struct xm_lower *l, const struct xm_node *n)
{
    if (n->op == XM_OP_RESULT)
        return;
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (has_unknown_size(&n->out[i]))
            join_nodes(l, n, n);
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_in(n, i);
        if (!xm_is_none(v) && has_unknown_size(v))
            join_nodes(l, n, v->node);
    }
}

enum xm_status
xm_lower_find_regions(struct xm_lower *l)
{
    uint32_t **lists[] = {&l->region, &l->region_first, &l->region_next, &l->region_last};
    uint32_t n_ids = l->g->next_id + 1;
    for (size_t i = 0; i < XM_ARRAY_LEN(lists); i++) {
        *lists[i] = xm_malloc(n_ids * sizeof(uint32_t));
        if (!*lists[i])
            return xm_fail(l->err, XM_NO_MEMORY, "out of memory while lowering");
        for (uint32_t k = 0; k < n_ids; k++)
            (*lists[i])[k] = XM_NO_VALUE;
    }
    xm_for_each_node(n, l->g) visit(l, n);
    xm_for_each_node(n, l->g)
    {
        if (!xm_lower_is_in_region(l, n))
            continue;
        uint32_t root = find_region(l, n->id), last = l->region_last[root];
        if (last == XM_NO_VALUE)
            l->region_first[root] = n->id;
        else
            l->region_next[last] = n->id;
        l->region_last[root] = n->id;
    }
    return XM_OK;
}

void
xm_lower_free_regions(struct xm_lower *l)
{
    xm_free(l->region);
    xm_free(l->region_first);
    xm_free(l->region_next);
    xm_free(l->region_last);
}

bool
xm_lower_is_in_region(const struct xm_lower *l, const struct xm_node *n)
{
    return l->region[n->id] != XM_NO_VALUE;
}

/* ---- steps ---- */

struct building {
    struct xm_lower *l;
    struct xm_region region;
    struct xm_step_operand *operands;
    uint32_t n_operands, n_in;
};

/* Returns whether v needs no operand of the step: a node of the region computes it, it is an
 * operand already, or it is a constant, which the host reference reads from the graph. */
static bool
is_made_inside(const struct building *b, const struct xm_value *v)
{
    enum xm_op op = v->node->op;
    if (xm_is_none(v) || op == XM_OP_CONST || op == XM_OP_WEIGHT ||
        op == XM_OP_SHAPE_VALUE)
        return true;
    for (uint32_t i = 0; i < b->region.n_nodes; i++) {
        if (b->region.nodes[i] == v->node)
            return true;
    }
    for (uint32_t i = 0; i < b->n_operands; i++) {
        if (b->region.values[i] == v)
            return true; /* listed already */
    }
    return false;
}

static bool
is_used_outside(const struct building *b, const struct xm_value *v)
{
    for (const struct xm_use *u = v->uses; u; u = u->next) {
        bool inside = false;
        for (uint32_t i = 0; i < b->region.n_nodes; i++)
            inside |= b->region.nodes[i] == u->user;
        if (!inside)
            return true;
    }
    return false;
}

static enum xm_status
add_inputs(struct building *b)
{
    for (uint32_t k = 0; k < b->region.n_nodes; k++) {
        const struct xm_node *n = b->region.nodes[k];
        for (uint32_t i = 0; i < n->n_in; i++) {
            struct xm_value *v = xm_in(n, i);
            if (is_made_inside(b, v))
                continue;
            xm_lower_absent(&b->operands[b->n_operands], 1);
            XM_TRY(xm_lower_value(b->l, v, &b->operands[b->n_operands].value));
            b->region.values[b->n_operands++] = v;
        }
    }
    b->n_in = b->n_operands;
    return XM_OK;
}

static enum xm_status
add_results(struct building *b)
{
    for (uint32_t k = 0; k < b->region.n_nodes; k++) {
        struct xm_node *n = (struct xm_node *)b->region.nodes[k];
        for (uint32_t i = 0; i < n->n_out; i++) {
            if (!is_used_outside(b, &n->out[i]) && b->region.n_nodes > 1)
                continue;
            if (has_unknown_size(&n->out[i]) && !n->out[i].uses)
                continue; /* no node reads it: the new value of a state, say */
            if (has_unknown_size(&n->out[i]))
                return xm_fail(b->l->err, XM_UNPLANNED,
                               "the size of its result depends on data, but a step on "
                               "the device needs the size in advance");
            XM_TRY(xm_lower_result(b->l, n, i, XM_DYNAMIC, &b->operands[b->n_operands]));
            b->region.values[b->n_operands++] = &n->out[i];
        }
    }
    return XM_OK;
}

static enum xm_status
note_state(struct xm_lower *l, const struct xm_node *n)
{
    l->p->host_states |= (xm_op_info(n->op)->flags & XM_OPF_STATE) != 0;
    if (n->op != XM_OP_READ_VALUE)
        return XM_OK;
    struct xm_state_read *read = xm_arena_alloc(&l->p->arena, sizeof(*read));
    if (!read)
        return xm_no_memory(l->err, "a state");
    *read = (struct xm_state_read){n, l->p->state_reads};
    l->p->state_reads = read;
    return XM_OK;
}

/* Adds a host step for a region of n_nodes nodes, after the steps so far. `list` must lie in the
 * program's arena, because the step keeps it. `place`: the node that names the step. */
static enum xm_status
add_host_step(struct xm_lower *l, const struct xm_node **list, uint32_t n_nodes,
              struct xm_node *place)
{
    struct xm_arena *arena = &l->p->arena;
    uint32_t most = 0;
    for (uint32_t i = 0; i < n_nodes; i++)
        most += list[i]->n_in + list[i]->n_out;
    struct xm_region *region = xm_arena_alloc(arena, sizeof(*region));
    struct building b = {.l = l, .region = {.nodes = list, .n_nodes = n_nodes}};
    b.region.values = xm_arena_alloc(arena, (most + 1) * sizeof(*b.region.values));
    b.operands = xm_arena_alloc(arena, (most + 1) * sizeof(*b.operands));
    if (!region || !b.region.values || !b.operands)
        return xm_no_memory(l->err, "a host step");
    XM_TRY(add_inputs(&b));
    XM_TRY(add_results(&b));
    *region = b.region;
    struct xm_step *step = NULL;
    XM_TRY(xm_lower_list_step(l, place, XM_STEP_HOST, NULL, b.operands, b.n_in,
                              b.n_operands - b.n_in, &step));
    step->region = region;
    step->node = n_nodes == 1 ? place : NULL;
    for (uint32_t i = 0; i < n_nodes; i++)
        XM_TRY(note_state(l, list[i]));
    l->p->n_host_steps++;
    xm_debug(XM_DEBUG_DISPATCH, "%s '%s' (%u operations) runs on the host",
             xm_op_info(place->op)->text, place->name, n_nodes);
    return XM_OK;
}

enum xm_status
xm_lower_to_host(struct xm_lower *l, struct xm_node *n)
{
    const struct xm_node **list = xm_arena_alloc(&l->p->arena, sizeof(*list));
    if (!list)
        return xm_no_memory(l->err, "a host step");
    list[0] = n;
    return add_host_step(l, list, 1, n);
}

static enum xm_status
lower_region_of(struct xm_lower *l, uint32_t root, struct xm_node *place)
{
    uint32_t count = 0;
    struct xm_node *last = place;
    for (uint32_t id = l->region_first[root]; id != XM_NO_VALUE; id = l->region_next[id])
        count++;
    l->region_first[root] = XM_NO_VALUE; /* marks that the region has its step */
    const struct xm_node **list = xm_arena_alloc(&l->p->arena, count * sizeof(*list));
    if (!list)
        return xm_no_memory(l->err, "a host step");
    while (last->id != l->region_last[root])
        last = last->next;
    uint32_t left = count;
    for (struct xm_node *m = last; m && left; m = m->before) {
        if (xm_lower_is_in_region(l, m) && find_region(l, m->id) == root)
            list[--left] = m;
    }
    return add_host_step(l, list, count, place);
}

enum xm_status
xm_lower_region(struct xm_lower *l, struct xm_node *n)
{
    uint32_t root = find_region(l, n->id);
    if (l->region_last[root] != n->id || l->region_first[root] == XM_NO_VALUE)
        return XM_OK;
    return lower_region_of(l, root, n);
}

enum xm_status
xm_lower_region_before(struct xm_lower *l, struct xm_node *n)
{
    if (!xm_lower_is_in_region(l, n))
        return XM_OK;
    uint32_t root = find_region(l, n->id);
    if (l->region_first[root] == XM_NO_VALUE)
        return XM_OK;
    return lower_region_of(l, root, n);
}
