/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters with a filter, a test or an attribute as argument: map, select, reject and others.
 */
#include "plugin/text/jinja/filters.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;
typedef const struct xm_jinja_list list;

static enum xm_status
empty_list(struct xm_jinja_run *r, value *out)
{
    struct xm_jinja_list *none = NULL;
    XM_TRY(xm_jinja_new_list(r, 0, &none));
    *out = xm_jinja_list_value(none);
    return XM_OK;
}

/* Returns the argument `name`; NULL: it was not given. */
static const value *
find_arg(args *a, const char *name)
{
    for (size_t i = a->n_positional; i < a->n; i++)
        if (xm_jinja_is(a->names[i], name))
            return &a->values[i];
    return NULL;
}

/* Finds the filter or test named by argument `from`, and the arguments behind it for this function.
 * *builtin is NULL if no name was given. */
static enum xm_status
find_function(struct xm_jinja_run *r, args *a, size_t from, bool filter,
              const struct xm_jinja_builtin **builtin, struct xm_jinja_args *rest)
{
    *builtin = NULL;
    *rest = (struct xm_jinja_args){0};
    if (a->n_positional <= from)
        return XM_OK;
    value name = a->values[from];
    if (name.kind == XM_JINJA_STRING)
        *builtin =
            filter ? xm_jinja_find_filter(name.text) : xm_jinja_find_test(name.text);
    if (!*builtin)
        return xm_jinja_fail(r, "%s needs the name of a %s", filter ? "map" : "select",
                             filter ? "filter" : "test");
    *rest = (struct xm_jinja_args){a->n - from - 1, a->n_positional - from - 1,
                                   a->values + from + 1, a->names + from + 1};
    return XM_OK;
}

static enum xm_status
map_attribute(struct xm_jinja_run *r, args *a, const value *attribute, value item,
              value *out)
{
    return xm_jinja_path(r, item, *attribute, find_arg(a, "default"), out);
}

static enum xm_status
filter_map(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *mapped = NULL;
    const struct xm_jinja_builtin *filter;
    struct xm_jinja_args rest;
    const value *attribute = find_arg(a, "attribute");
    if (!xm_jinja_truth(self)) /* an empty value, such as none, gives nothing */
        return empty_list(r, out);
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(find_function(r, a, 0, true, &filter, &rest));
    if (!filter && (!attribute || a->n > 1 + (find_arg(a, "default") != NULL)))
        return xm_jinja_fail(r, "map needs a filter, or an attribute and its default");
    XM_TRY(xm_jinja_new_list(r, items->n, &mapped));
    for (size_t i = 0; i < items->n; i++)
        XM_TRY(filter
                   ? xm_jinja_call_builtin(r, filter, items->items[i], &rest,
                                           &mapped->items[i])
                   : map_attribute(r, a, attribute, items->items[i], &mapped->items[i]));
    *out = xm_jinja_list_value(mapped);
    return XM_OK;
}

/* Selects the items for which a test of the item, or of its attribute, gives `wanted`. Without a
 * test the truth value is used. */
static enum xm_status
select_items(struct xm_jinja_run *r, value self, args *a, bool by_attribute, bool wanted,
             value *out)
{
    list *items = NULL;
    struct xm_jinja_list *kept = NULL;
    const struct xm_jinja_builtin *test;
    struct xm_jinja_args rest;
    size_t n = 0;
    if (!xm_jinja_truth(self))
        return empty_list(r, out);
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(find_function(r, a, by_attribute, false, &test, &rest));
    if (by_attribute && a->n_positional == 0)
        return xm_jinja_fail(r, "selectattr and rejectattr need an attribute");
    XM_TRY(xm_jinja_new_list(r, items->n, &kept));
    for (size_t i = 0; i < items->n; i++) {
        value v = items->items[i];
        if (by_attribute)
            XM_TRY(xm_jinja_path(r, v, a->values[0], NULL, &v));
        if (test)
            XM_TRY(xm_jinja_call_builtin(r, test, v, &rest, &v));
        if (xm_jinja_truth(v) == wanted)
            kept->items[n++] = items->items[i];
    }
    kept->n = n;
    *out = xm_jinja_list_value(kept);
    return XM_OK;
}

static enum xm_status
filter_select(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return select_items(r, self, a, false, true, out);
}

static enum xm_status
filter_reject(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return select_items(r, self, a, false, false, out);
}

static enum xm_status
filter_selectattr(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return select_items(r, self, a, true, true, out);
}

static enum xm_status
filter_rejectattr(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return select_items(r, self, a, true, false, out);
}

static enum xm_status
filter_attr(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_slice name;
    XM_TRY(xm_jinja_to_text(r, a->values[0], &name));
    *out = xm_jinja_undefined(name); /* items of a mapping are not attributes */
    return self.kind == XM_JINJA_DICT ? XM_OK : xm_jinja_attribute(r, self, name, out);
}

/* clang-format off */
static const struct xm_jinja_builtin filters[] = {
    {"attr", filter_attr, {"name"}, 1, false, false},
    {"map", filter_map, {NULL}, 0, true, true},
    {"reject", filter_reject, {NULL}, 0, true, true},
    {"rejectattr", filter_rejectattr, {NULL}, 0, true, true},
    {"select", filter_select, {NULL}, 0, true, true},
    {"selectattr", filter_selectattr, {NULL}, 0, true, true},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_select_filter(struct xm_slice name)
{
    return xm_jinja_find(filters, XM_ARRAY_LEN(filters), name);
}
