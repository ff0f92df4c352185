/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that every template can call.
 */
#include <time.h>

#include "plugin/text/jinja/run.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

enum { MAX_RANGE = 100000 }; /* as in Jinja's sandbox */

static enum xm_status
global_range(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    struct xm_jinja_list *list = NULL;
    int64_t v[3] = {0, 0, 1};
    if (a->n < 1 || a->n > 3 || a->n != a->n_positional)
        return xm_jinja_fail(r, "range takes one to three integers");
    for (size_t i = 0; i < a->n; i++) {
        if (a->values[i].kind != XM_JINJA_INT && a->values[i].kind != XM_JINJA_BOOL)
            return xm_jinja_fail(r, "range got %s, expected an integer",
                                 xm_jinja_kind_name(a->values[i].kind));
        v[a->n == 1 ? 1 : i] = xm_jinja_to_int(a->values[i]);
    }
    if (v[2] == 0)
        return xm_jinja_fail(r, "the step of range is 0");
    bool up = v[2] > 0, empty = up ? v[0] >= v[1] : v[0] <= v[1];
    uint64_t distance = empty ? 0
                        : up  ? (uint64_t)v[1] - (uint64_t)v[0]
                              : (uint64_t)v[0] - (uint64_t)v[1];
    uint64_t step = up ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
    uint64_t n = distance / step + (distance % step != 0);
    if (n > MAX_RANGE)
        return xm_jinja_fail(r, "a range of %llu numbers, at most %d",
                             (unsigned long long)n, MAX_RANGE);
    XM_TRY(xm_jinja_new_list(r, n, &list));
    for (size_t i = 0; i < list->n; i++)
        list->items[i] = xm_jinja_int(v[0] + (int64_t)i * v[2]);
    *out = xm_jinja_list_value(list);
    return XM_OK;
}

/* From the named arguments, and the mapping that may stand before them. */
static enum xm_status
make_dict(struct xm_jinja_run *r, args *a, enum xm_jinja_kind kind, value *out)
{
    struct xm_jinja_dict *dict = NULL;
    XM_TRY(xm_jinja_new_dict(r, &dict));
    if (a->n_positional > 1 ||
        (a->n_positional == 1 && a->values[0].kind != XM_JINJA_DICT))
        return xm_jinja_fail(r, "dict and namespace take one mapping and named values");
    if (a->n_positional == 1)
        for (size_t i = 0; i < a->values[0].dict->n; i++)
            XM_TRY(xm_jinja_dict_put(r, dict, a->values[0].dict->keys[i],
                                     a->values[0].dict->values[i]));
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
        return xm_jinja_fail(r, "the time is not known");
    size_t n = strftime(text, sizeof(text), format, &local);
    return xm_jinja_copy_text(r, xm_slice_of(text, n), out);
}

/* clang-format off */
static const struct xm_jinja_builtin globals[] = {
    {"dict", global_dict, {NULL}, 0, true},
    {"namespace", global_namespace, {NULL}, 0, true},
    {"raise_exception", global_raise_exception, {"message"}, 1, false},
    {"range", global_range, {NULL}, 0, true},
    {"strftime_now", global_strftime_now, {"format"}, 1, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_global(struct xm_slice name)
{
    return xm_jinja_find(globals, XM_ARRAY_LEN(globals), name);
}
