/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions to values: one function for each kind of node, in a table.
 */
#include "plugin/text/jinja/run.h"

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

static int
shown(struct xm_slice name) /* bytes, in a sentence */
{
    return (int)(name.n < 100 ? name.n : 100);
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

/* --- calls --- */

/* Arguments while they are collected: a spread gives any number of them. */
struct collected {
    struct xm_jinja_args args;
    size_t capacity;
};

static enum xm_status
add_arg(struct xm_jinja_run *r, struct collected *c, struct xm_slice name, value v)
{
    if (c->args.n == c->capacity) {
        struct xm_jinja_value *values = NULL;
        struct xm_slice *names = NULL;
        c->capacity = c->capacity ? 2 * c->capacity : 4;
        XM_TRY(xm_jinja_alloc(r, c->capacity, sizeof(*values), &values));
        XM_TRY(xm_jinja_alloc(r, c->capacity, sizeof(*names), &names));
        if (c->args.n > 0) {
            memcpy(values, c->args.values, c->args.n * sizeof(*values));
            memcpy(names, c->args.names, c->args.n * sizeof(*names));
        }
        c->args.values = values;
        c->args.names = names;
    }
    c->args.values[c->args.n] = v;
    c->args.names[c->args.n++] = name;
    c->args.n_positional += name.text == NULL;
    return XM_OK;
}

static enum xm_status
add_spread_list(struct xm_jinja_run *r, struct collected *c, value v)
{
    const struct xm_jinja_list *items = NULL;
    XM_TRY(xm_jinja_iterate(r, v, &items));
    XM_TRY(xm_jinja_charge(r, items->n));
    for (size_t i = 0; i < items->n; i++)
        XM_TRY(add_arg(r, c, (struct xm_slice){0}, items->items[i]));
    return XM_OK;
}

static enum xm_status
add_spread_dict(struct xm_jinja_run *r, struct collected *c, value v)
{
    if (v.kind != XM_JINJA_DICT)
        return xm_jinja_fail(r, "'**' before %s, expected a mapping",
                             xm_jinja_kind_name(v.kind));
    for (size_t i = 0; i < v.dict->n; i++) {
        const value key = v.dict->keys[i];
        if (key.kind != XM_JINJA_STRING)
            return xm_jinja_fail(r, "the name of an argument is %s",
                                 xm_jinja_kind_name(key.kind));
        XM_TRY(add_arg(r, c, key.text, v.dict->values[i]));
    }
    return XM_OK;
}

/* Those without a name, of which "*" gives some wherever it stands; then those with one. */
static enum xm_status
add_args(struct xm_jinja_run *r, node *list, bool named, struct collected *c)
{
    for (node *arg = list; arg; arg = arg->next) {
        const bool spread = arg->kind == XM_JINJA_SPREAD;
        const bool has_name = spread ? arg->name.n == 2 : arg->kind == XM_JINJA_KEYWORD;
        value v;
        if (has_name != named)
            continue;
        XM_TRY(xm_jinja_evaluate(r, spread || has_name ? arg->in[0] : arg, &v));
        if (spread)
            XM_TRY((named ? add_spread_dict : add_spread_list)(r, c, v));
        else
            XM_TRY(add_arg(r, c, named ? arg->name : (struct xm_slice){0}, v));
    }
    return XM_OK;
}

/* The arguments of a call, a filter or a test. */
static enum xm_status
evaluate_args(struct xm_jinja_run *r, node *list, struct xm_jinja_args *out)
{
    struct collected c = {0};
    XM_TRY(add_args(r, list, false, &c));
    XM_TRY(add_args(r, list, true, &c));
    for (size_t i = c.args.n_positional; i < c.args.n; i++)
        for (size_t k = i + 1; k < c.args.n; k++) {
            XM_TRY(xm_jinja_charge(r, 1));
            if (xm_slice_equal(c.args.names[i], c.args.names[k]))
                return xm_jinja_fail(r, "the argument '%.*s' is given twice",
                                     shown(c.args.names[i]), c.args.names[i].text);
        }
    *out = c.args;
    return XM_OK;
}

static enum xm_status
fail_argument(struct xm_jinja_run *r, const char *function, struct xm_slice name)
{
    return xm_jinja_fail(r, "%s has no parameter '%.*s', or has it twice", function,
                         shown(name), name.text);
}

/* Puts each argument in the place of its parameter. */
static enum xm_status
place_args(struct xm_jinja_run *r, const struct xm_jinja_builtin *builtin,
           const struct xm_jinja_args *args, value *places)
{
    size_t n = 0;
    while (n < XM_JINJA_MAX_PARAMS && builtin->params[n])
        n++;
    if (args->n_positional > n)
        return xm_jinja_fail(r, "%s takes at most %zu arguments, found %zu",
                             builtin->name, n, args->n_positional);
    for (size_t i = 0; i < args->n; i++) {
        size_t place = i;
        if (i >= args->n_positional)
            for (place = 0; place < n; place++)
                if (xm_jinja_is(args->names[i], builtin->params[place]))
                    break;
        if (place >= n || places[place].kind != XM_JINJA_ABSENT)
            return fail_argument(r, builtin->name, args->names[i]);
        places[place] = args->values[i];
    }
    for (size_t i = 0; i < builtin->n_required; i++)
        if (places[i].kind == XM_JINJA_ABSENT)
            return xm_jinja_fail(r, "%s needs its argument '%s'", builtin->name,
                                 builtin->params[i]);
    return XM_OK;
}

enum xm_status
xm_jinja_call_builtin(struct xm_jinja_run *r, const struct xm_jinja_builtin *builtin,
                      value self, const struct xm_jinja_args *args, value *out)
{
    value places[XM_JINJA_MAX_PARAMS] = {{0}}, result = xm_jinja_none();
    const struct xm_jinja_args placed = {
        .n = XM_JINJA_MAX_PARAMS, .n_positional = XM_JINJA_MAX_PARAMS, .values = places};
    if (self.kind == XM_JINJA_STRING) /* most look at all of it */
        XM_TRY(xm_jinja_charge_text(r, self.text.n));
    XM_TRY(xm_jinja_enter(r)); /* map and select call others */
    if (!builtin->is_raw)
        XM_TRY(place_args(r, builtin, args, places));
    XM_TRY(
        builtin->is_lazy
            ? xm_jinja_defer(r, builtin, self, builtin->is_raw ? args : &placed, &result)
            : builtin->run(r, self, builtin->is_raw ? args : &placed, &result));
    r->depth--;
    *out = result;
    return XM_OK;
}

/* The value for parameter number `index` of a macro, ABSENT if none is given. */
static value
find_macro_arg(const struct xm_jinja_args *args, size_t index, struct xm_slice name)
{
    if (index < args->n_positional)
        return args->values[index];
    for (size_t i = args->n_positional; i < args->n; i++)
        if (xm_slice_equal(args->names[i], name))
            return args->values[i];
    return (value){0};
}

/* The place of a parameter, or their number when there is none of this name. */
static size_t
find_parameter(node *macro, struct xm_slice name)
{
    size_t place = 0;
    for (node *p = macro->args; p && !xm_slice_equal(p->name, name); p = p->next)
        place++;
    return place;
}

/* Whether the body uses the name, and no parameter has it. */
static bool
takes_special(node *macro, enum xm_jinja_special use, const char *name)
{
    return (macro->uses & use) &&
           find_parameter(macro, xm_slice_of(name, strlen(name))) ==
               count_nodes(macro->args);
}

/* What is left of the arguments when the parameters have theirs: varargs, kwargs, caller. */
static enum xm_status
bind_other_args(struct xm_jinja_run *r, node *macro, const struct xm_jinja_args *args)
{
    const size_t n = count_nodes(macro->args);
    const bool varargs = takes_special(macro, XM_JINJA_USES_VARARGS, "varargs");
    const bool kwargs = takes_special(macro, XM_JINJA_USES_KWARGS, "kwargs");
    const bool caller = takes_special(macro, XM_JINJA_USES_CALLER, "caller");
    struct xm_jinja_list *rest = NULL;
    struct xm_jinja_dict *named = NULL;
    value called = xm_jinja_undefined(xm_slice_of("caller", 6));
    if (args->n_positional > n && !varargs)
        return xm_jinja_fail(r, "macro '%.*s' takes at most %zu arguments, found %zu",
                             shown(macro->name), macro->name.text, n, args->n_positional);
    XM_TRY(
        xm_jinja_new_list(r, args->n_positional > n ? args->n_positional - n : 0, &rest));
    for (size_t i = 0; i < rest->n; i++)
        rest->items[i] = args->values[n + i];
    XM_TRY(xm_jinja_new_dict(r, &named));
    for (size_t i = args->n_positional; i < args->n; i++) {
        const size_t place = find_parameter(macro, args->names[i]);
        if (place < n && place >= args->n_positional)
            continue;
        if (caller && xm_jinja_is(args->names[i], "caller"))
            called = args->values[i];
        else if (!kwargs)
            return fail_argument(r, "the macro", args->names[i]);
        else
            XM_TRY(xm_jinja_dict_put(r, named, xm_jinja_text(args->names[i]),
                                     args->values[i]));
    }
    if (varargs)
        XM_TRY(xm_jinja_bind(r, xm_slice_of("varargs", 7),
                             (value){.kind = XM_JINJA_TUPLE, .list = rest}));
    if (kwargs)
        XM_TRY(xm_jinja_bind(r, xm_slice_of("kwargs", 6),
                             (value){.kind = XM_JINJA_DICT, .dict = named}));
    return caller ? xm_jinja_bind(r, xm_slice_of("caller", 6), called) : XM_OK;
}

/* In the macro's own scope: defaults may use the parameters before them. */
static enum xm_status
bind_macro_args(struct xm_jinja_run *r, node *macro, const struct xm_jinja_args *args)
{
    size_t index = 0;
    for (node *p = macro->args; p; p = p->next, index++) {
        value v = find_macro_arg(args, index, p->name);
        if (v.kind == XM_JINJA_ABSENT && p->in[0])
            XM_TRY(xm_jinja_evaluate(r, p->in[0], &v));
        else if (v.kind == XM_JINJA_ABSENT)
            v = xm_jinja_undefined(p->name);
        XM_TRY(xm_jinja_bind(r, p->name, v));
    }
    return XM_OK;
}

static enum xm_status
call_macro(struct xm_jinja_run *r, const struct xm_jinja_function *function,
           const struct xm_jinja_args *args, value *out)
{
    struct xm_jinja_frame *frame = NULL, *outside = r->frame;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*frame), &frame));
    frame->outer = function->scope;
    r->frame = frame;
    XM_TRY(bind_other_args(r, function->macro, args));
    XM_TRY(bind_macro_args(r, function->macro, args));
    XM_TRY(xm_jinja_capture(r, function->macro->body, out));
    r->frame = outside;
    return XM_OK;
}

static enum xm_status
call_value(struct xm_jinja_run *r, value callee, const struct xm_jinja_args *args,
           value *out)
{
    if (callee.kind == XM_JINJA_UNDEFINED)
        return xm_jinja_fail(r, "'%.*s' is undefined and cannot be called",
                             shown(callee.text), callee.text.text);
    if (callee.kind == XM_JINJA_LOOP)
        return xm_jinja_call_loop(r, callee.loop, args, out);
    if (callee.kind != XM_JINJA_FUNCTION)
        return xm_jinja_fail(r, "%s cannot be called", xm_jinja_kind_name(callee.kind));
    const struct xm_jinja_function *f = callee.function;
    return f->builtin ? xm_jinja_call_builtin(r, f->builtin, f->self, args, out)
                      : call_macro(r, f, args, out);
}

enum xm_status
xm_jinja_call(struct xm_jinja_run *r, node *call, const struct xm_jinja_function *caller,
              value *out)
{
    value callee;
    struct collected c = {0};
    XM_TRY(xm_jinja_evaluate(r, call->in[0], &callee));
    XM_TRY(evaluate_args(r, call->args, &c.args));
    c.capacity = c.args.n;
    r->at = call;
    if (caller)
        XM_TRY(add_arg(r, &c, xm_slice_of("caller", 6),
                       (value){.kind = XM_JINJA_FUNCTION, .function = caller}));
    return call_value(r, callee, &c.args, out);
}

static enum xm_status
evaluate_call(struct xm_jinja_run *r, node *n, value *out)
{
    return xm_jinja_call(r, n, NULL, out);
}

/* Filters and tests. */
static enum xm_status
evaluate_builtin(struct xm_jinja_run *r, node *n, value *out)
{
    value self;
    struct xm_jinja_args args;
    XM_TRY(xm_jinja_evaluate(r, n->in[0], &self));
    XM_TRY(evaluate_args(r, n->args, &args));
    r->at = n;
    if (!n->builtin)
        return xm_jinja_fail(r, "there is no %s '%.*s'",
                             n->kind == XM_JINJA_TEST ? "test" : "filter", shown(n->name),
                             n->name.text);
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

/* The left operand itself when it settles the matter. */
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
