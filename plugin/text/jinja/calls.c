/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: evaluates arguments, assigns them to parameters and runs the called function.
 *
 * Positional arguments come before named ones, wherever * and ** stand. A filter, a test and a
 * method get one value for each parameter of their row; a macro binds its parameters, and binds the
 * remaining arguments to varargs, kwargs and caller.
 */
#include "plugin/text/jinja/run_state.h"

#include "runtime/util/number.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_node node;

static int
shown(struct xm_slice name) /* bytes to show in an error message */
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

/* A growing list of arguments: a spread adds any number of them. */
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
        return xm_jinja_fail(r, "'**' is applied to %s, expected a mapping",
                             xm_jinja_kind_name(v.kind));
    for (size_t i = 0; i < v.dict->n; i++) {
        const value key = v.dict->keys[i];
        if (key.kind != XM_JINJA_STRING)
            return xm_jinja_fail(r, "the name of an argument is %s, expected a string",
                                 xm_jinja_kind_name(key.kind));
        XM_TRY(add_arg(r, c, key.text, v.dict->values[i]));
    }
    return XM_OK;
}

/* Adds the positional arguments, including those of "*", or (`named`) the named ones, including
 * those of "**". */
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

enum xm_status
xm_jinja_evaluate_args(struct xm_jinja_run *r, node *list, struct xm_jinja_args *out)
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
    return xm_jinja_fail(r, "%s has no parameter '%.*s', or it is given twice", function,
                         shown(name), name.text);
}

/* Stores each argument at the index of its parameter. */
static enum xm_status
place_args(struct xm_jinja_run *r, const struct xm_jinja_builtin *builtin,
           const struct xm_jinja_args *args, value *places)
{
    size_t n = 0;
    while (n < XM_JINJA_MAX_PARAMS && builtin->params[n])
        n++;
    if (args->n_positional > n)
        return xm_jinja_fail(r, "%s takes at most %zu argument%s, found %zu",
                             builtin->name, n, xm_plural(n), args->n_positional);
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
    if (self.kind == XM_JINJA_STRING) /* most functions read the whole text */
        XM_TRY(xm_jinja_charge_text(r, self.text.n));
    XM_TRY(xm_jinja_enter(r)); /* map and select call other functions */
    if (!builtin->is_raw)
        XM_TRY(place_args(r, builtin, args, places));
    XM_TRY(
        builtin->is_lazy
            ? xm_jinja_defer(r, builtin, self, builtin->is_raw ? args : &placed, &result)
            : builtin->run(r, self, builtin->is_raw ? args : &placed, &result));
    XM_TRY(xm_jinja_keep_safe(r, builtin, self, &result));
    r->depth--;
    *out = result;
    return XM_OK;
}

/* Returns the argument for parameter number `index` of a macro; ABSENT: none was given. */
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

/* Returns the index of a parameter; the number of parameters if none has this name. */
static size_t
find_parameter(node *macro, struct xm_slice name)
{
    size_t place = 0;
    for (node *p = macro->args; p && !xm_slice_equal(p->name, name); p = p->next)
        place++;
    return place;
}

/* Returns whether the body uses the implicit variable and no parameter has its name. */
static bool
takes_special(node *macro, enum xm_jinja_special use, const char *name)
{
    return (macro->uses & use) &&
           find_parameter(macro, xm_slice_of(name, strlen(name))) ==
               count_nodes(macro->args);
}

/* Binds the arguments that no parameter takes to varargs, kwargs and caller. */
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
        return xm_jinja_fail(r, "macro '%.*s' takes at most %zu argument%s, found %zu",
                             shown(macro->name), macro->name.text, n, xm_plural(n),
                             args->n_positional);
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

/* Binds the parameters in the macro's own scope, in order: a default value may use the parameters
 * before it. */
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
    XM_TRY(xm_jinja_evaluate_args(r, call->args, &c.args));
    c.capacity = c.args.n;
    r->at = call;
    if (caller)
        XM_TRY(add_arg(r, &c, xm_slice_of("caller", 6),
                       (value){.kind = XM_JINJA_FUNCTION, .function = caller}));
    return call_value(r, callee, &c.args, out);
}
