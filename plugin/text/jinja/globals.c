/* SPDX-License-Identifier: Apache-2.0
 *
 * Global functions, which every template can call.
 */
#include <time.h>

#include "plugin/text/jinja/run_state.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

static enum xm_status
global_range(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    int64_t v[3] = {0, 0, 1};
    if (a->n < 1 || a->n > 3 || a->n != a->n_positional)
        return xm_jinja_fail(r, "range takes one to three integers");
    for (size_t i = 0; i < a->n; i++) {
        if (a->values[i].kind != XM_JINJA_INT && a->values[i].kind != XM_JINJA_BOOL)
            return xm_jinja_fail(r, "an argument of range is %s, expected an integer",
                                 xm_jinja_kind_name(a->values[i].kind));
        v[a->n == 1 ? 1 : i] = xm_jinja_to_int(a->values[i]);
    }
    return xm_jinja_new_range(r, v[0], v[1], v[2], out);
}

/* Adds the members of a mapping, or of a sequence of pairs (key, value), to `dict`. */
static enum xm_status
put_all(struct xm_jinja_run *r, struct xm_jinja_dict *dict, value from)
{
    const struct xm_jinja_list *pairs = NULL, *pair = NULL;
    if (from.kind == XM_JINJA_DICT) {
        for (size_t i = 0; i < from.dict->n; i++)
            XM_TRY(xm_jinja_dict_put(r, dict, from.dict->keys[i], from.dict->values[i]));
        return XM_OK;
    }
    if (from.kind == XM_JINJA_UNDEFINED)
        return xm_jinja_fail(r, "a mapping cannot be made of an undefined value");
    XM_TRY(xm_jinja_iterate(r, from, &pairs));
    for (size_t i = 0; i < pairs->n; i++) {
        XM_TRY(xm_jinja_iterate(r, pairs->items[i], &pair));
        if (pair->n != 2)
            return xm_jinja_fail(
                r, "a mapping is made of pairs, found an item of %zu values", pair->n);
        XM_TRY(xm_jinja_dict_put(r, dict, pair->items[0], pair->items[1]));
    }
    return XM_OK;
}

/* Makes a dict or namespace of the optional positional mapping and the named arguments. */
static enum xm_status
make_dict(struct xm_jinja_run *r, args *a, enum xm_jinja_kind kind, value *out)
{
    struct xm_jinja_dict *dict = NULL;
    XM_TRY(xm_jinja_new_dict(r, &dict));
    if (a->n_positional > 1)
        return xm_jinja_fail(r, "dict and namespace take one mapping and named values");
    if (a->n_positional == 1)
        XM_TRY(put_all(r, dict, a->values[0]));
    for (size_t i = a->n_positional; i < a->n; i++)
        XM_TRY(xm_jinja_dict_put(r, dict, xm_jinja_text(a->names[i]), a->values[i]));
    *out = (value){.kind = kind, .dict = dict};
    return XM_OK;
}

static enum xm_status
global_dict(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    return make_dict(r, a, XM_JINJA_DICT, out);
}

static enum xm_status
global_namespace(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    return make_dict(r, a, XM_JINJA_NAMESPACE, out);
}

static enum xm_status
new_cycler(struct xm_jinja_run *r, const struct xm_jinja_list *items, bool stays,
           value *out)
{
    struct xm_jinja_cycler *cycler = NULL;
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*cycler), &cycler));
    *cycler = (struct xm_jinja_cycler){items, 0, stays};
    *out = (value){.kind = XM_JINJA_CYCLER, .cycler = cycler};
    return XM_OK;
}

static enum xm_status
global_cycler(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    struct xm_jinja_list *items = NULL;
    if (a->n == 0 || a->n != a->n_positional)
        return xm_jinja_fail(r, "cycler takes one or more positional items");
    XM_TRY(xm_jinja_new_list(r, a->n, &items));
    memcpy(items->items, a->values, a->n * sizeof(*items->items));
    return new_cycler(r, items, false, out);
}

static enum xm_status
take_turn(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    struct xm_jinja_cycler *c = self.cycler;
    *out = c->items->items[c->at];
    c->at = c->at + 1 < c->items->n ? c->at + 1 : c->stays ? c->at : 0;
    return XM_OK;
}

/* joiner(): makes a function whose first call returns "", every later call the separator. */
static enum xm_status
global_joiner(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    static const struct xm_jinja_builtin call = {"joiner", take_turn, {NULL},
                                                 0,        false,     false};
    struct xm_jinja_list *items = NULL;
    struct xm_jinja_function *function = NULL;
    XM_TRY(xm_jinja_new_list(r, 2, &items));
    items->items[0] = xm_jinja_text(xm_slice_of("", 0));
    items->items[1] = a->values[0].kind == XM_JINJA_ABSENT
                          ? xm_jinja_text(xm_slice_of(", ", 2))
                          : a->values[0];
    XM_TRY(xm_jinja_alloc(r, 1, sizeof(*function), &function));
    function->builtin = &call;
    XM_TRY(new_cycler(r, items, true, &function->self));
    *out = (value){.kind = XM_JINJA_FUNCTION, .function = function};
    return XM_OK;
}

static enum xm_status
cycler_reset(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    self.cycler->at = 0;
    *out = xm_jinja_none();
    return XM_OK;
}

static enum xm_status
global_raise_exception(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    (void)out;
    struct xm_slice text;
    XM_TRY(xm_jinja_to_text(r, a->values[0], &text));
    return xm_jinja_fail(
        r, "%.*s", (int)(text.n < XM_ERROR_TEXT ? text.n : XM_ERROR_TEXT), text.text);
}

static enum xm_status
global_strftime_now(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    char format[256], text[1024];
    time_t now = time(NULL);
    struct tm local;
    if (a->values[0].kind != XM_JINJA_STRING || a->values[0].text.n >= sizeof(format) ||
        (a->values[0].text.n > 0 &&
         memchr(a->values[0].text.text, '\0', a->values[0].text.n)))
        return xm_jinja_fail(r, "strftime_now needs a format of at most %zu bytes",
                             sizeof(format) - 1);
    memcpy(format, a->values[0].text.text, a->values[0].text.n);
    format[a->values[0].text.n] = '\0';
    if (!localtime_r(&now, &local))
        return xm_jinja_fail(r, "the current time is not available");
    size_t n = strftime(text, sizeof(text), format, &local);
    return xm_jinja_copy_text(r, xm_slice_of(text, n), out);
}

/* clang-format off */
static const struct xm_jinja_builtin globals[] = {
    {"cycler", global_cycler, {NULL}, 0, true, false},
    {"dict", global_dict, {NULL}, 0, true, false},
    {"joiner", global_joiner, {"sep"}, 0, false, false},
    {"namespace", global_namespace, {NULL}, 0, true, false},
    {"raise_exception", global_raise_exception, {"message"}, 1, false, false},
    {"range", global_range, {NULL}, 0, true, false},
    {"strftime_now", global_strftime_now, {"format"}, 1, false, false},
};
static const struct xm_jinja_builtin cycler_methods[] = {
    {"next", take_turn, {NULL}, 0, false, false},
    {"reset", cycler_reset, {NULL}, 0, false, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_global(struct xm_slice name)
{
    return xm_jinja_find(globals, XM_ARRAY_LEN(globals), name);
}

const struct xm_jinja_builtin *
xm_jinja_find_cycler_method(struct xm_slice name)
{
    return xm_jinja_find(cycler_methods, XM_ARRAY_LEN(cycler_methods), name);
}
