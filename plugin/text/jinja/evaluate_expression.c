/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates expressions: a table has one function for each kind of node.
 */
#include "plugin/text/jinja/run_state.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_node node;
typedef enum xm_status evaluate_fn(struct xm_jinja_run *r, node *n, value *out);

static enum xm_status
evaluate_constant(struct xm_jinja_run *r, node *n, value *out)
{
    (void)r;
    *out = n->constant;
    return XM_OK;
}

static enum xm_status
evaluate_captured(struct xm_jinja_run *r, node *n, value *out)
{
    (void)n;
    *out = r->captured;
    return XM_OK;
}

static enum xm_status
evaluate_name(struct xm_jinja_run *r, node *n, value *out)
{
    uint64_t looked = 0;
    for (const struct xm_jinja_frame *f = r->frame; f; f = f->outer)
        for (const struct xm_jinja_binding *b = f->bindings; b; b = b->next, looked++)
            if (xm_slice_equal(b->name, n->name)) {
                *out = b->value;
                return xm_jinja_charge(r, looked / 16);
            }
    struct xm_jinja_function *function = NULL;
    const struct xm_jinja_builtin *builtin = xm_jinja_find_global(n->name);
    if (!builtin) {
        *out = xm_jinja_undefined(n->name);
        return XM_OK;
    }
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*function), &function));
    function->builtin = builtin;
    *out = (value){.kind = XM_JINJA_FUNCTION, .function = function};
    return XM_OK;
}

static size_t
count_nodes(node *n)
{
    size_t count = 0;
    for (; n; n = n->next)
        count++;
    return count;
}

static enum xm_status
evaluate_list(struct xm_jinja_run *r, node *n, value *out)
{
    struct xm_jinja_list *list = NULL;
    size_t i = 0;
    XM_TRY(xm_jinja_new_list(r, count_nodes(n->args), &list));
    for (node *item = n->args; item; item = item->next)
        XM_TRY(xm_jinja_evaluate(r, item, &list->items[i++]));
    bool tuple = n->kind == XM_JINJA_MAKE_TUPLE;
    *out = (value){.kind = tuple ? XM_JINJA_TUPLE : XM_JINJA_LIST, .list = list};
    return XM_OK;
}

static enum xm_status
evaluate_dict(struct xm_jinja_run *r, node *n, value *out)
{
    struct xm_jinja_dict *dict = NULL;
    XM_TRY(xm_jinja_new_dict(r, &dict));
    for (node *key = n->args; key; key = key->next->next) {
        value k, v;
        XM_TRY(xm_jinja_evaluate(r, key, &k));
        XM_TRY(xm_jinja_evaluate(r, key->next, &v));
        XM_TRY(xm_jinja_dict_put(r, dict, k, v));
    }
    *out = (value){.kind = XM_JINJA_DICT, .dict = dict};
    return XM_OK;
}

static enum xm_status
evaluate_attribute(struct xm_jinja_run *r, node *n, value *out)
{
    value of;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &of));
    return xm_jinja_attribute(r, of, n->name, out);
}

static enum xm_status
evaluate_item(struct xm_jinja_run *r, node *n, value *out)
{
    value of, key;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &of));
    XM_TRY(xm_jinja_evaluate(r, n->in[1], &key));
    return xm_jinja_item(r, of, key, out);
}

static enum xm_status
evaluate_slice(struct xm_jinja_run *r, node *n, value *out)
{
    value of, bounds[3] = {{0}};
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &of));
    for (int i = 0; i < 3; i++)
        if (n->in[i + 1])
            XM_TRY(xm_jinja_evaluate(r, n->in[i + 1], &bounds[i]));
    return xm_jinja_slice(r, of, bounds, out);
}

static enum xm_status
evaluate_call(struct xm_jinja_run *r, node *n, value *out)
{
    return xm_jinja_call(r, n, NULL, out);
}

/* Evaluates a filter or a test. */
static enum xm_status
evaluate_builtin(struct xm_jinja_run *r, node *n, value *out)
{
    value self;
    struct xm_jinja_args args;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &self));
    XM_TRY(xm_jinja_evaluate_args(r, n->args, &args));
    r->at = n;
    if (!n->builtin)
        return xm_jinja_fail(r, "there is no %s '%.*s'",
                             n->kind == XM_JINJA_TEST ? "test" : "filter",
                             (int)(n->name.n < 100 ? n->name.n : 100), n->name.text);
    return xm_jinja_call_builtin(r, n->builtin, self, &args, out);
}

/* --- operators --- */

static enum xm_status
evaluate_not(struct xm_jinja_run *r, node *n, value *out)
{
    value v;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &v));
    *out = xm_jinja_bool(!xm_jinja_truth(v));
    return XM_OK;
}

/* Evaluates and / or: the result is the left operand if it decides, else the right one. */
static enum xm_status
evaluate_logic(struct xm_jinja_run *r, node *n, value *out)
{
    XM_TRY(xm_jinja_evaluate(r, n->in[0], out));
    if (xm_jinja_truth(*out) == (n->kind == XM_JINJA_OR))
        return XM_OK;
    return xm_jinja_evaluate(r, n->in[1], out);
}

static enum xm_status
evaluate_unary(struct xm_jinja_run *r, node *n, value *out)
{
    value v;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &v));
    return xm_jinja_unary(r, n->name, v, out);
}

static enum xm_status
evaluate_binary(struct xm_jinja_run *r, node *n, value *out)
{
    value a, b;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &a));
    XM_TRY(xm_jinja_evaluate(r, n->in[1], &b));
    r->at = n;
    return xm_jinja_binary(r, n->name, a, b, out);
}

static enum xm_status
evaluate_compare(struct xm_jinja_run *r, node *n, value *out)
{
    value left, right;
    bool holds = true;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &left));
    for (node *with = n->args; with && holds; with = with->next) {
        XM_TRY(xm_jinja_evaluate(r, with->in[0], &right));
        r->at = with;
        XM_TRY(xm_jinja_compare(r, with->name, left, right, &holds));
        left = right;
    }
    *out = xm_jinja_bool(holds);
    return XM_OK;
}

static enum xm_status
evaluate_conditional(struct xm_jinja_run *r, node *n, value *out)
{
    value test;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &test));
    if (xm_jinja_truth(test))
        return xm_jinja_evaluate(r, n->in[1], out);
    if (n->in[2])
        return xm_jinja_evaluate(r, n->in[2], out);
    *out = xm_jinja_undefined(xm_slice_of("an inline if without else", 25));
    return XM_OK;
}

static evaluate_fn *const evaluators[XM_JINJA_N_EXPRESSIONS] = {
    [XM_JINJA_CONSTANT] = evaluate_constant,
    [XM_JINJA_NAME] = evaluate_name,
    [XM_JINJA_MAKE_LIST] = evaluate_list,
    [XM_JINJA_MAKE_TUPLE] = evaluate_list,
    [XM_JINJA_MAKE_DICT] = evaluate_dict,
    [XM_JINJA_ATTRIBUTE] = evaluate_attribute,
    [XM_JINJA_ITEM] = evaluate_item,
    [XM_JINJA_SLICE] = evaluate_slice,
    [XM_JINJA_CALL] = evaluate_call,
    [XM_JINJA_FILTER] = evaluate_builtin,
    [XM_JINJA_TEST] = evaluate_builtin,
    [XM_JINJA_CAPTURED] = evaluate_captured,
    [XM_JINJA_NOT] = evaluate_not,
    [XM_JINJA_AND] = evaluate_logic,
    [XM_JINJA_OR] = evaluate_logic,
    [XM_JINJA_UNARY] = evaluate_unary,
    [XM_JINJA_BINARY] = evaluate_binary,
    [XM_JINJA_COMPARE] = evaluate_compare,
    [XM_JINJA_CONDITIONAL] = evaluate_conditional,
};

enum xm_status
xm_jinja_evaluate(struct xm_jinja_run *r, node *n, value *out)
{
    r->at = n;
    XM_TRY(xm_jinja_enter(r));
    XM_TRY(evaluators[n->kind](r, n, out));
    r->depth--;
    return XM_OK;
}
