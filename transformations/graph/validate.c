/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of a whole graph. Each node is checked alone, assuming that the nodes before it are right;
 * then names and states are checked together.
 */
#include "transformations/graph/validate.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"
#include "transformations/graph/infer.h"
#include "transformations/graph/text.h"

struct check {
    struct xm_graph *g;
    struct xm_strbuf *report; /* NULL: none */
    struct xm_arena scratch;
    unsigned char *seen; /* by number of a value: its node has been checked */
    uint32_t n_errors;
    bool no_memory;
    struct xm_error first; /* first error, which the caller gets with the count */
};

static void complain(struct check *c, const struct xm_node *n, const char *fmt, ...)
    XM_PRINTF(3, 4);

static void
complain(struct check *c, const struct xm_node *n, const char *fmt, ...)
{
    struct xm_error e = {0};
    va_list ap;
    va_start(ap, fmt);
    xm_fail_v(&e, XM_INVALID, fmt, ap);
    va_end(ap);
    if (c->report)
        xm_strbuf_printf(c->report, "    ^ %s\n", e.text);
    if (c->n_errors++ > 0)
        return;
    c->first = e;
    if (n)
        xm_error_prefix(&c->first, "%%%u (%s%s%s)", n->id, xm_op_info(n->op)->text,
                        *n->name ? " " : "", n->name);
}

/* ---- structure of one node --------------------------------------------------------- */

static void
check_operand(struct check *c, const struct xm_node *n, uint32_t k)
{
    const struct xm_use *u = &n->in[k];
    const struct xm_value *v = u->value;
    const struct xm_node *maker = v->node;
    if (u->user != n || (u->before ? u->before->next : v->uses) != u ||
        (u->next && u->next->before != u))
        complain(c, n, "operand %u is not in the list of uses of its value", k);
    if (maker->op == XM_OP_NONE)
        return;
    if (v->index >= maker->n_out || v != &maker->out[v->index])
        complain(c, n, "operand %u is not a result of its node", k);
    else if (maker->id >= c->g->next_id || !c->seen[maker->id])
        complain(c, n, "operand %u, %%%u, is defined later or was removed", k, maker->id);
}

static void
check_uses(struct check *c, const struct xm_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++) {
        const struct xm_value *v = &n->out[k];
        uint32_t count = 0;
        for (const struct xm_use *u = v->uses; u && count <= v->n_uses; u = u->next)
            count += u->value == v;
        if (count != v->n_uses)
            complain(c, n, "result %u lists %u uses, expected %u", k, count, v->n_uses);
        if (v->node != n || v->index != k)
            complain(c, n, "result %u has the wrong node or index", k);
    }
}

static void
check_structure(struct check *c, const struct xm_node *n)
{
    const struct xm_op_info *info = xm_op_info(n->op);
    if (n->n_in < (uint32_t)info->min_in ||
        (info->max_in >= 0 && n->n_in > (uint32_t)info->max_in))
        complain(c, n, "it has %u operands, expected %d to %d", n->n_in, info->min_in,
                 info->max_in);
    if (n->n_out == 0 || (info->n_out >= 0 && n->n_out != (uint32_t)info->n_out))
        complain(c, n, "it has %u results, expected %d", n->n_out, info->n_out);
    if (n->before ? n->before->next != n : c->g->first != n)
        complain(c, n, "the list of nodes is broken before it");
    for (uint32_t k = 0; k < n->n_in; k++)
        check_operand(c, n, k);
    check_uses(c, n);
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->id >= c->g->next_id || k >= c->g->next_id - n->id)
            complain(c, n, "its number is not below %u", c->g->next_id);
        else if (c->seen[n->id + k]++)
            complain(c, n, "the number %%%u is taken", n->id + k);
    }
}

/* ---- attributes and types of one node ---------------------------------------------- */

static void
check_attr(struct check *c, const struct xm_node *n, const struct xm_attr_info *info)
{
    const void *at = (const char *)&n->attr + info->offset;
    int count = 0;
    switch (info->kind) {
    case XM_ATTR_ENUM:
        while (info->names[count])
            count++;
        if (*(const int *)at < 0 || *(const int *)at >= count)
            complain(c, n, "attribute %s has the unknown value %d", info->text,
                     *(const int *)at);
        break;
    case XM_ATTR_ELEMENT:
        if ((unsigned)*(const enum xm_element *)at >= XM_ELEMENT_COUNT)
            complain(c, n, "attribute %s is not an element type", info->text);
        break;
    case XM_ATTR_F32:
        if (*(const float *)at != *(const float *)at)
            complain(c, n, "attribute %s is not a number", info->text);
        break;
    case XM_ATTR_F64:
        if (*(const double *)at != *(const double *)at)
            complain(c, n, "attribute %s is not a number", info->text);
        break;
    case XM_ATTR_STRING:
        if (!*(const char *const *)at)
            complain(c, n, "attribute %s is missing", info->text);
        else if (!info->default_text && !**(const char *const *)at)
            complain(c, n, "attribute %s is empty", info->text);
        break;
    case XM_ATTR_BOOL:
    case XM_ATTR_I64:
        break;
    }
}

static void
check_types(struct check *c, const struct xm_node *n)
{
    struct xm_value *out = xm_arena_alloc(&c->scratch, n->n_out * sizeof(*out));
    struct xm_error err = {0};
    struct xm_strbuf said = {0}, found = {0};
    if (!out) {
        c->no_memory = true;
        return;
    }
    memcpy(out, n->out, n->n_out * sizeof(*out));
    enum xm_status status = xm_infer_node(c->g, n, &c->scratch, out, &err);
    if (status == XM_NO_MEMORY)
        c->no_memory = true;
    else if (status != XM_OK)
        complain(c, n, "%s", err.text);
    for (uint32_t k = 0; status == XM_OK && k < n->n_out; k++) {
        if (xm_type_agrees(&n->out[k].type, &out[k].type))
            continue;
        xm_strbuf_clear(&said);
        xm_strbuf_clear(&found);
        xm_type_print(&n->out[k].type, &said);
        xm_type_print(&out[k].type, &found);
        complain(c, n, "result %u is %s, but its operands give %s", k,
                 xm_strbuf_text(&said), xm_strbuf_text(&found));
    }
    xm_strbuf_free(&said);
    xm_strbuf_free(&found);
}

static void
check_node(struct check *c, const struct xm_node *n)
{
    uint32_t before = c->n_errors;
    size_t n_attrs;
    const struct xm_attr_info *info = xm_op_attrs(n->op, &n_attrs);
    if (c->report) {
        xm_node_print(n, c->report);
        xm_strbuf_add(c->report, "\n");
    }
    check_structure(c, n);
    for (size_t i = 0; i < n_attrs; i++)
        check_attr(c, n, &info[i]);
    if (n->op == XM_OP_CONST && !n->attr.data.bytes)
        complain(c, n, "the constant has no bytes");
    if (c->n_errors == before)
        check_types(c, n);
}

/* ---- names ------------------------------------------------------------------------- */

static bool
is_named(const struct xm_node *n)
{
    return (n->op == XM_OP_PARAMETER || n->op == XM_OP_RESULT || n->op == XM_OP_ASSIGN ||
            n->op == XM_OP_READ_VALUE) &&
           n->attr.name.name;
}

static int
by_op_and_name(const void *a, const void *b)
{
    const struct xm_node *x = *(const struct xm_node *const *)a;
    const struct xm_node *y = *(const struct xm_node *const *)b;
    return x->op != y->op ? (int)x->op - (int)y->op
                          : strcmp(x->attr.name.name, y->attr.name.name);
}

/* Whether two results return the same tensor: then both have its name. */
static bool
give_the_same(const struct xm_node *x, const struct xm_node *y)
{
    return x->op == XM_OP_RESULT && y->op == XM_OP_RESULT && xm_in(x, 0) == xm_in(y, 0);
}

static void
check_names(struct check *c)
{
    size_t count = 0, size = sizeof(const struct xm_node *);
    const struct xm_node **list = xm_arena_alloc(&c->scratch, (c->g->n_nodes + 1) * size);
    c->no_memory |= !list;
    xm_for_each_node(n, c->g)
    {
        if (list && is_named(n))
            list[count++] = n;
    }
    if (count)
        qsort(list, count, size, by_op_and_name);
    for (size_t i = 0; i < count; i++) {
        const char *name = list[i]->attr.name.name;
        struct xm_node read = {.op = XM_OP_READ_VALUE, .attr = {.name = {name}}};
        const struct xm_node *key = &read;
        if (i > 0 && *name && list[i]->op != XM_OP_READ_VALUE &&
            by_op_and_name(&list[i], &list[i - 1]) == 0 &&
            !give_the_same(list[i], list[i - 1]))
            complain(c, list[i], "two %ss have the name '%s'",
                     xm_op_info(list[i]->op)->text, name);
        if (list[i]->op == XM_OP_ASSIGN &&
            !bsearch(&key, list, count, size, by_op_and_name))
            complain(c, list[i], "the state '%s' is assigned, but never read", name);
    }
}

/* ---- the whole graph --------------------------------------------------------------- */

static void
check_graph(struct check *c)
{
    uint32_t count = 0;
    const struct xm_node *last = NULL;
    for (const struct xm_node *n = c->g->first; n && count <= c->g->n_nodes;
         n = n->next) {
        check_node(c, n);
        last = n;
        count++;
    }
    if (count != c->g->n_nodes || last != c->g->last)
        complain(c, NULL, "the list of nodes does not have the expected %u nodes",
                 c->g->n_nodes);
    else
        check_names(c);
}

enum xm_status
xm_graph_validate(struct xm_graph *g, struct xm_strbuf *report, struct xm_error *err)
{
    struct check c = {.g = g, .report = report};
    enum xm_status status = XM_OK;
    c.seen = xm_calloc((size_t)g->next_id + 1, 1);
    c.no_memory = !c.seen;
    if (c.seen)
        check_graph(&c);
    xm_free(c.seen);
    xm_arena_free(&c.scratch);
    if (c.n_errors > 0)
        status = xm_fail(err, XM_INVALID, "%s (%u error%s in all)", c.first.text,
                         c.n_errors, xm_plural(c.n_errors));
    else if (c.no_memory)
        status = xm_fail(err, XM_NO_MEMORY,
                         "out of memory to validate a graph of %u nodes", g->n_nodes);
    return status;
}

/* ---- leftovers --------------------------------------------------------------------- */

enum { MAX_CHAIN = 8 };

/* Whether v is computed from constants only, by the ops of a dequantisation; *largest: the largest
 * of these constants. */
static bool
is_from_constants(const struct xm_value *v, int depth, const struct xm_node **largest,
                  uint64_t *bytes)
{
    const struct xm_node *n = v->node;
    switch (n->op) {
    case XM_OP_CONST:
    case XM_OP_WEIGHT: {
        uint64_t size = n->op == XM_OP_CONST ? n->attr.data.n_bytes
                                             : xm_weight_bytes(&n->attr.weight);
        if (size > *bytes) {
            *bytes = size;
            *largest = n;
        }
        return true;
    }
    case XM_OP_CONVERT:
    case XM_OP_CONVERT_LIKE:
    case XM_OP_RESHAPE:
    case XM_OP_TRANSPOSE:
    case XM_OP_SQUEEZE:
    case XM_OP_UNSQUEEZE:
        return depth > 0 && is_from_constants(xm_in(n, 0), depth - 1, largest, bytes);
    case XM_OP_ADD:
    case XM_OP_SUBTRACT:
    case XM_OP_MULTIPLY:
    case XM_OP_DIVIDE:
        return depth > 0 && is_from_constants(xm_in(n, 0), depth - 1, largest, bytes) &&
               is_from_constants(xm_in(n, 1), depth - 1, largest, bytes);
    default:
        return false;
    }
}

static bool
computes(enum xm_op op)
{
    return op == XM_OP_CONVERT || op == XM_OP_CONVERT_LIKE || op == XM_OP_ADD ||
           op == XM_OP_SUBTRACT || op == XM_OP_MULTIPLY || op == XM_OP_DIVIDE;
}

static enum xm_status
check_readable(const struct xm_node *n, struct xm_error *err)
{
    if (n->op != XM_OP_CONST || !n->out[0].n_uses ||
        xm_element_readable(n->out[0].type.element))
        return XM_OK;
    return xm_fail(err, XM_UNSUPPORTED,
                   "%%%u (const%s%s) has element type %s, which is not supported", n->id,
                   *n->name ? " " : "", n->name, xm_element_text(n->out[0].type.element));
}

enum xm_status
xm_graph_check_leftovers(struct xm_graph *g, struct xm_error *err)
{
    xm_for_each_node(n, g)
    {
        const struct xm_node *from = NULL;
        uint64_t bytes = 0;
        XM_TRY(check_readable(n, err));
        if (!computes(n->op) || !xm_element_is_float(n->out[0].type.element) ||
            !is_from_constants(&n->out[0], MAX_CHAIN, &from, &bytes) ||
            bytes <= XM_LEFTOVER_BYTES)
            continue;
        return xm_fail(err, XM_INVALID,
                       "%%%u (%s%s%s) would expand the weight %%%u%s%s (%llu bytes) to "
                       "%s: its quantisation scheme is not supported",
                       n->id, xm_op_info(n->op)->text, *n->name ? " " : "", n->name,
                       from->id, *from->name ? " " : "", from->name,
                       (unsigned long long)bytes,
                       xm_element_text(n->out[0].type.element));
    }
    return XM_OK;
}
