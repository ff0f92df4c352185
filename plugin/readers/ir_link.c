/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the source of each input port from the edges, and an order of the layers with operands
 * first.
 *
 * Layers may have any order in the file. The order here keeps the file's order as far as it is
 * valid, parameters first, so that inputs and outputs keep their order. The walk has its own stack,
 * because a chain of a million layers would exhaust the thread's stack.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/readers/ir_records.h"

static int
compare_ids(const void *a, const void *b)
{
    const struct xm_ir_layer *x = *(struct xm_ir_layer *const *)a;
    const struct xm_ir_layer *y = *(struct xm_ir_layer *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Makes an array of all layers, sorted by id, in the net's arena. */
static enum xm_status
index_layers(struct xm_ir_net *net, struct xm_ir_layer ***out, struct xm_error *err)
{
    struct xm_ir_layer **by_id =
        xm_arena_alloc(&net->arena, net->n_layers * sizeof(struct xm_ir_layer *));
    if (!by_id)
        return xm_no_memory(err, "%zu layers", net->n_layers);
    size_t n = 0;
    for (struct xm_ir_layer *l = net->first_layer; l; l = l->next)
        by_id[n++] = l;
    qsort(by_id, n, sizeof(*by_id), compare_ids);
    for (size_t i = 1; i < n; i++) {
        if (by_id[i]->id == by_id[i - 1]->id)
            return xm_fail(err, XM_INVALID,
                           "layers '%.80s' and '%.80s' have the same id %" PRIu64,
                           by_id[i - 1]->name, by_id[i]->name, by_id[i]->id);
    }
    *out = by_id;
    return XM_OK;
}

static struct xm_ir_layer *
find_layer(struct xm_ir_layer **by_id, size_t n, uint64_t id)
{
    struct xm_ir_layer key = {.id = id}, *p = &key;
    struct xm_ir_layer **hit = bsearch(&p, by_id, n, sizeof(*by_id), compare_ids);
    return hit ? *hit : NULL;
}

static struct xm_ir_port *
find_port(const struct xm_ir_ports *ports, uint64_t id)
{
    struct xm_ir_port *p = ports->first;
    while (p && p->id != id)
        p = p->next;
    return p;
}

static enum xm_status
missing_port(const struct xm_ir_layer *l, const char *direction, uint64_t port,
             struct xm_error *err)
{
    return xm_fail(err, XM_INVALID,
                   "an edge names %s port %" PRIu64 ", which layer '%.80s' (id %" PRIu64
                   ", %.40s) does not have",
                   direction, port, l->name, l->id, l->type);
}

static enum xm_status
link_edge(struct xm_ir_layer **by_id, size_t n, const struct xm_ir_edge *e,
          struct xm_error *err)
{
    struct xm_ir_layer *from = find_layer(by_id, n, e->from_layer);
    struct xm_ir_layer *to = find_layer(by_id, n, e->to_layer);
    if (!from || !to)
        return xm_fail(err, XM_INVALID,
                       "an edge from layer %" PRIu64 " to layer %" PRIu64
                       " names layer %" PRIu64 ", which does not exist",
                       e->from_layer, e->to_layer, from ? e->to_layer : e->from_layer);
    struct xm_ir_port *source = find_port(&from->out, e->from_port);
    struct xm_ir_port *target = find_port(&to->in, e->to_port);
    if (!source)
        return missing_port(from, "output", e->from_port, err);
    if (!target)
        return missing_port(to, "input", e->to_port, err);
    if (target->from)
        return xm_fail(
            err, XM_INVALID,
            "two edges feed input port %" PRIu64 " of layer '%.80s' (id %" PRIu64
            ", %.40s): from layers %" PRIu64 " and %" PRIu64,
            e->to_port, to->name, to->id, to->type, target->from->id, from->id);
    target->from = from;
    target->from_port = source;
    return XM_OK;
}

static enum xm_status
check_ports(const struct xm_ir_layer *l, const struct xm_ir_ports *ports, bool inputs,
            struct xm_error *err)
{
    for (const struct xm_ir_port *p = ports->first; p; p = p->next) {
        if (find_port(ports, p->id) != p)
            return xm_fail(err, XM_INVALID,
                           "layer '%.80s' (id %" PRIu64 ", %.40s) has port %" PRIu64
                           " twice",
                           l->name, l->id, l->type, p->id);
        if (inputs && !p->from)
            return xm_fail(err, XM_INVALID,
                           "no edge feeds input port %" PRIu64
                           " of layer '%.80s' (id %" PRIu64 ", %.40s)",
                           p->id, l->name, l->id, l->type);
    }
    return XM_OK;
}

/* A layer on the walk's stack, and its next input to follow. */
struct step {
    struct xm_ir_layer *layer;
    struct xm_ir_port *next;
};

/* Appends `root` and the layers that it needs to the order, operands first. */
static enum xm_status
walk(struct xm_ir_net *net, struct xm_ir_layer *root, struct step *stack, size_t *n_order,
     struct xm_error *err)
{
    size_t depth = 0;
    if (root->visit == XM_IR_DONE)
        return XM_OK;
    root->visit = XM_IR_OPEN;
    stack[depth++] = (struct step){root, root->in.first};
    while (depth) {
        struct step *top = &stack[depth - 1];
        if (!top->next) {
            top->layer->visit = XM_IR_DONE;
            net->order[(*n_order)++] = top->layer;
            depth--;
            continue;
        }
        struct xm_ir_layer *from = top->next->from;
        top->next = top->next->next;
        if (from->visit == XM_IR_OPEN)
            return xm_fail(err, XM_INVALID,
                           "the layers form a cycle through layer '%.80s' (id %" PRIu64
                           ", %.40s)",
                           from->name, from->id, from->type);
        if (from->visit == XM_IR_UNSEEN) {
            from->visit = XM_IR_OPEN;
            stack[depth++] = (struct step){from, from->in.first};
        }
    }
    return XM_OK;
}

static enum xm_status
order_layers(struct xm_ir_net *net, struct xm_error *err)
{
    size_t n_order = 0;
    struct step *stack = xm_calloc(net->n_layers, sizeof(*stack));
    net->order =
        xm_arena_alloc(&net->arena, net->n_layers * sizeof(struct xm_ir_layer *));
    enum xm_status status = XM_OK;
    if (!stack || !net->order)
        status = xm_no_memory(err, "%zu layers", net->n_layers);
    for (struct xm_ir_layer *l = net->first_layer; l && status == XM_OK; l = l->next) {
        if (strcmp(l->type, "Parameter") == 0)
            status = walk(net, l, stack, &n_order, err);
    }
    for (struct xm_ir_layer *l = net->first_layer; l && status == XM_OK; l = l->next)
        status = walk(net, l, stack, &n_order, err);
    xm_free(stack);
    return status;
}

enum xm_status
xm_ir_link(struct xm_ir_net *net, struct xm_error *err)
{
    struct xm_ir_layer **by_id = NULL;
    XM_TRY(index_layers(net, &by_id, err));
    for (const struct xm_ir_edge *e = net->first_edge; e; e = e->next)
        XM_TRY(link_edge(by_id, net->n_layers, e, err));
    for (struct xm_ir_layer *l = net->first_layer; l; l = l->next) {
        XM_TRY(check_ports(l, &l->in, true, err));
        XM_TRY(check_ports(l, &l->out, false, err));
    }
    return order_layers(net, err);
}
