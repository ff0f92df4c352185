/* SPDX-License-Identifier: Apache-2.0 */
#include "transformations/graph/retype.h"

#include "transformations/graph/builder.h"

static struct xm_node *
find_node(const struct xm_graph *g, enum xm_op op, uint32_t index)
{
    xm_for_each_node(n, g)
    {
        if (n->op == op && index-- == 0)
            return n;
    }
    return NULL;
}

static enum xm_status
check_types(const char *name, enum xm_element from, enum xm_element to,
            struct xm_error *err)
{
    if (xm_element_readable(from) && xm_element_writable(from) &&
        xm_element_readable(to) && xm_element_writable(to))
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "'%s' has element type %s and cannot take tensors of element type %s",
                   name, xm_element_text(from), xm_element_text(to));
}

static enum xm_status
fail_of(const struct xm_graph *g, struct xm_error *err)
{
    return xm_fail(err, g->err.status, "%s", g->err.text);
}

enum xm_status
xm_graph_set_input_type(struct xm_graph *g, uint32_t input, enum xm_element type,
                        struct xm_error *err)
{
    struct xm_node *p = find_node(g, XM_OP_PARAMETER, input);
    if (!p)
        return xm_fail(err, XM_INVALID, "there is no input %u", input);
    struct xm_value *v = &p->out[0];
    const enum xm_element old = v->type.element;
    if (old == type)
        return XM_OK;
    XM_TRY(check_types(p->name, old, type, err));
    struct xm_builder b = {g, p->next, p->name};
    v->type.element = type;
    struct xm_value *converted = xm_convert(&b, v, old);
    if (!converted) {
        v->type.element = old;
        return fail_of(g, err);
    }
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; i < n->n_in; i++) {
            if (n != converted->node && xm_in(n, i) == v)
                xm_node_set_in(n, i, converted);
        }
    }
    return XM_OK;
}

enum xm_status
xm_graph_set_result_type(struct xm_graph *g, uint32_t result, enum xm_element type,
                         struct xm_error *err)
{
    struct xm_node *r = find_node(g, XM_OP_RESULT, result);
    if (!r)
        return xm_fail(err, XM_INVALID, "there is no result %u", result);
    struct xm_value *v = xm_in(r, 0), *own = &r->out[0];
    if (v->type.element == type)
        return XM_OK;
    XM_TRY(check_types(r->name, v->type.element, type, err));
    struct xm_builder b = {g, r, v->node->name};
    struct xm_value *converted = xm_convert(&b, v, type);
    if (!converted)
        return fail_of(g, err);
    xm_node_set_in(r, 0, converted);
    own->type.element = type;
    if (!own->n_names) {
        own->names = v->names;
        own->n_names = v->n_names;
    }
    return XM_OK;
}
