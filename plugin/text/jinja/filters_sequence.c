/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that work through sequences. All results are lists.
 */
#include "plugin/text/jinja/filters.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;
typedef const struct xm_jinja_list list;

static bool
given(value v)
{
    return v.kind != XM_JINJA_ABSENT && v.kind != XM_JINJA_NONE;
}

static enum xm_status
filter_length(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    int64_t n = 0;
    XM_TRY(xm_jinja_length(r, self, &n));
    *out = xm_jinja_int(n);
    return XM_OK;
}

static enum xm_status
filter_list(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    list *items = NULL;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    *out = xm_jinja_list_value(items);
    return XM_OK;
}

/* The item at the front or at the end. */
static enum xm_status
end_item(struct xm_jinja_run *r, value self, bool last, value *out)
{
    list *items = NULL;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    *out = items->n > 0 ? items->items[last ? items->n - 1 : 0]
                        : xm_jinja_undefined(xm_slice_of("an item of nothing", 18));
    return XM_OK;
}

static enum xm_status
filter_first(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return end_item(r, self, false, out);
}

static enum xm_status
filter_last(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return end_item(r, self, true, out);
}

static enum xm_status
filter_reverse(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    const value backwards[3] = {{0}, {0}, xm_jinja_int(-1)};
    if (self.kind == XM_JINJA_STRING)
        return xm_jinja_slice(r, self, backwards, out);
    XM_TRY(filter_list(r, self, a, &self));
    return xm_jinja_slice(r, self, backwards, out);
}

static enum xm_status
filter_items(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_list *pairs = NULL;
    if (self.kind != XM_JINJA_DICT && self.kind != XM_JINJA_UNDEFINED)
        return xm_jinja_fail(r, "items of %s, expected a mapping",
                             xm_jinja_kind_name(self.kind));
    XM_TRY(xm_jinja_new_list(r, self.kind == XM_JINJA_DICT ? self.dict->n : 0, &pairs));
    for (size_t i = 0; i < pairs->n; i++)
        XM_TRY(xm_jinja_new_pair(r, self.dict->keys[i], self.dict->values[i],
                                 &pairs->items[i]));
    *out = xm_jinja_list_value(pairs);
    return XM_OK;
}

static enum xm_status
add_joined(struct xm_jinja_run *r, list *items, struct xm_slice between, value attribute,
           struct xm_jinja_buffer *b)
{
    for (size_t i = 0; i < items->n; i++) {
        value item = items->items[i];
        if (given(attribute))
            XM_TRY(xm_jinja_path(r, item, attribute, &item));
        if (i > 0)
            xm_jinja_add(r, b, between);
        XM_TRY(xm_jinja_print(r, item, b));
    }
    return XM_OK;
}

static enum xm_status
filter_join(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_buffer b = {0};
    struct xm_slice between;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_to_text(r, a->values[0], &between));
    enum xm_status status = add_joined(r, items, between, a->values[1], &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}

/* --- order --- */

/* What an item is sorted by: itself or an attribute, strings without their case. */
static enum xm_status
sort_key(struct xm_jinja_run *r, value item, value attribute, bool with_case, value *out)
{
    struct xm_jinja_buffer b = {0};
    *out = item;
    if (given(attribute))
        XM_TRY(xm_jinja_path(r, item, attribute, out));
    if (with_case || out->kind != XM_JINJA_STRING)
        return XM_OK;
    xm_jinja_change_case(r, out->text, XM_JINJA_LOWER, &b);
    return xm_jinja_take_text(r, &b, out);
}

struct keyed {
    value key, item;
};

/* Merges two sorted runs that lie side by side; equal keys keep their order. */
static enum xm_status
merge(struct xm_jinja_run *r, const struct keyed *from, size_t middle, size_t n, int sign,
      struct keyed *to)
{
    size_t a = 0, b = middle;
    for (size_t i = 0; i < n; i++) {
        int order = a == middle ? 1 : -1;
        if (a < middle && b < n) {
            XM_TRY(xm_jinja_charge(r, 1));
            XM_TRY(xm_jinja_order(r, from[a].key, from[b].key, &order));
            order *= sign;
        }
        to[i] = order <= 0 ? from[a++] : from[b++];
    }
    return XM_OK;
}

/* Merge sort, bottom up. */
static enum xm_status
sort_keyed(struct xm_jinja_run *r, struct keyed *items, size_t n, bool descending)
{
    struct keyed *other = NULL, *from = items;
    XM_TRY(xm_jinja_alloc(r, n, sizeof(*other), &other));
    struct keyed *to = other;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t here = n - at < 2 * width ? n - at : 2 * width;
            size_t middle = width < here ? width : here;
            XM_TRY(merge(r, from + at, middle, here, descending ? -1 : 1, to + at));
        }
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != items && n > 0)
        memcpy(items, from, n * sizeof(*items));
    return XM_OK;
}

static enum xm_status
sort_items(struct xm_jinja_run *r, list *items, value attribute, bool with_case,
           bool descending, value *out)
{
    struct keyed *keyed = NULL;
    struct xm_jinja_list *sorted = NULL;
    XM_TRY(xm_jinja_alloc(r, items->n, sizeof(*keyed), &keyed));
    for (size_t i = 0; i < items->n; i++) {
        keyed[i].item = items->items[i];
        XM_TRY(sort_key(r, items->items[i], attribute, with_case, &keyed[i].key));
    }
    XM_TRY(sort_keyed(r, keyed, items->n, descending));
    XM_TRY(xm_jinja_new_list(r, items->n, &sorted));
    for (size_t i = 0; i < items->n; i++)
        sorted->items[i] = keyed[i].item;
    *out = xm_jinja_list_value(sorted);
    return XM_OK;
}

static enum xm_status
filter_sort(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    return sort_items(r, items, a->values[2], xm_jinja_truth(a->values[1]),
                      xm_jinja_truth(a->values[0]), out);
}

static enum xm_status
filter_dictsort(struct xm_jinja_run *r, value self, args *a, value *out)
{
    value pairs;
    bool by_value =
        a->values[1].kind == XM_JINJA_STRING && xm_jinja_is(a->values[1].text, "value");
    XM_TRY(filter_items(r, self, a, &pairs));
    return sort_items(r, pairs.list, xm_jinja_int(by_value), xm_jinja_truth(a->values[0]),
                      xm_jinja_truth(a->values[2]), out);
}

static enum xm_status
filter_unique(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *kept = NULL, *keys = NULL;
    size_t n = 0;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_new_list(r, items->n, &kept));
    XM_TRY(xm_jinja_new_list(r, items->n, &keys));
    for (size_t i = 0; i < items->n; i++) {
        bool seen = false;
        XM_TRY(sort_key(r, items->items[i], a->values[1], xm_jinja_truth(a->values[0]),
                        &keys->items[n]));
        XM_TRY(xm_jinja_charge(r, n));
        for (size_t k = 0; k < n && !seen; k++)
            XM_TRY(xm_jinja_equal(r, keys->items[k], keys->items[n], &seen));
        if (!seen)
            kept->items[n++] = items->items[i];
    }
    kept->n = n;
    *out = xm_jinja_list_value(kept);
    return XM_OK;
}

static enum xm_status
extreme(struct xm_jinja_run *r, value self, args *a, int sign, value *out)
{
    list *items = NULL;
    value best = {0};
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_charge(r, items->n));
    *out = xm_jinja_undefined(xm_slice_of("an item of nothing", 18));
    for (size_t i = 0; i < items->n; i++) {
        value key;
        int order = 1;
        XM_TRY(sort_key(r, items->items[i], a->values[1], xm_jinja_truth(a->values[0]),
                        &key));
        if (i > 0)
            XM_TRY(xm_jinja_order(r, key, best, &order));
        if (i == 0 || order * sign > 0) {
            best = key;
            *out = items->items[i];
        }
    }
    return XM_OK;
}

static enum xm_status
filter_max(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return extreme(r, self, a, 1, out);
}

static enum xm_status
filter_min(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return extreme(r, self, a, -1, out);
}

static enum xm_status
filter_sum(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    value sum = a->values[1].kind == XM_JINJA_ABSENT ? xm_jinja_int(0) : a->values[1];
    XM_TRY(xm_jinja_iterate(r, self, &items));
    for (size_t i = 0; i < items->n; i++) {
        value item = items->items[i];
        XM_TRY(xm_jinja_charge(r, 1));
        if (given(a->values[0]))
            XM_TRY(xm_jinja_path(r, item, a->values[0], &item));
        XM_TRY(xm_jinja_binary(r, xm_slice_of("+", 1), sum, item, &sum));
    }
    *out = sum;
    return XM_OK;
}

static enum xm_status
filter_batch(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *rows = NULL;
    int64_t size = a->values[0].kind == XM_JINJA_INT ? a->values[0].integer : 0;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    if (size < 1 || size > 100000)
        return xm_jinja_fail(r, "batch needs a size of 1 to 100000");
    size_t width = (size_t)size;
    XM_TRY(xm_jinja_new_list(r, (items->n + width - 1) / width, &rows));
    for (size_t i = 0; i < rows->n; i++) {
        struct xm_jinja_list *row = NULL;
        size_t left = items->n - i * width;
        size_t n = left < width && !given(a->values[1]) ? left : width;
        XM_TRY(xm_jinja_new_list(r, n, &row));
        for (size_t k = 0; k < n; k++)
            row->items[k] = k < left ? items->items[i * width + k] : a->values[1];
        rows->items[i] = xm_jinja_list_value(row);
    }
    *out = xm_jinja_list_value(rows);
    return XM_OK;
}

/* --- filters that take filters and tests --- */

static enum xm_status
empty_list(struct xm_jinja_run *r, value *out)
{
    struct xm_jinja_list *none = NULL;
    XM_TRY(xm_jinja_new_list(r, 0, &none));
    *out = xm_jinja_list_value(none);
    return XM_OK;
}

/* The argument `name`, NULL if there is none. */
static const value *
find_arg(args *a, const char *name)
{
    for (size_t i = a->n_positional; i < a->n; i++)
        if (xm_jinja_is(a->names[i], name))
            return &a->values[i];
    return NULL;
}

/* The arguments from number `from` on, and a function that they are for; *builtin is NULL
 * when no name is given. */
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
    const value *other = find_arg(a, "default");
    XM_TRY(xm_jinja_path(r, item, *attribute, out));
    if (other && out->kind == XM_JINJA_UNDEFINED)
        *out = *other;
    return XM_OK;
}

static enum xm_status
filter_map(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *mapped = NULL;
    const struct xm_jinja_builtin *filter;
    struct xm_jinja_args rest;
    const value *attribute = find_arg(a, "attribute");
    if (!xm_jinja_truth(self)) /* as none, which gives nothing */
        return empty_list(r, out);
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(find_function(r, a, 0, true, &filter, &rest));
    if (!filter && !attribute)
        return xm_jinja_fail(r, "map needs a filter or an attribute");
    XM_TRY(xm_jinja_new_list(r, items->n, &mapped));
    for (size_t i = 0; i < items->n; i++)
        XM_TRY(filter
                   ? xm_jinja_call_builtin(r, filter, items->items[i], &rest,
                                           &mapped->items[i])
                   : map_attribute(r, a, attribute, items->items[i], &mapped->items[i]));
    *out = xm_jinja_list_value(mapped);
    return XM_OK;
}

/* The items for which the test (none: the truth) of the item, or of its attribute, is
 * `wanted`. */
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
            XM_TRY(xm_jinja_path(r, v, a->values[0], &v));
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
    *out = xm_jinja_undefined(name); /* items of mappings are no attributes */
    return self.kind == XM_JINJA_DICT ? XM_OK : xm_jinja_attribute(r, self, name, out);
}

/* clang-format off */
static const struct xm_jinja_builtin filters[] = {
    {"attr", filter_attr, {"name"}, 1, false},
    {"batch", filter_batch, {"linecount", "fill_with"}, 1, false},
    {"count", filter_length, {NULL}, 0, false},
    {"dictsort", filter_dictsort, {"case_sensitive", "by", "reverse"}, 0, false},
    {"first", filter_first, {NULL}, 0, false},
    {"items", filter_items, {NULL}, 0, false},
    {"join", filter_join, {"d", "attribute"}, 0, false},
    {"last", filter_last, {NULL}, 0, false},
    {"length", filter_length, {NULL}, 0, false},
    {"list", filter_list, {NULL}, 0, false},
    {"map", filter_map, {NULL}, 0, true},
    {"max", filter_max, {"case_sensitive", "attribute"}, 0, false},
    {"min", filter_min, {"case_sensitive", "attribute"}, 0, false},
    {"reject", filter_reject, {NULL}, 0, true},
    {"rejectattr", filter_rejectattr, {NULL}, 0, true},
    {"reverse", filter_reverse, {NULL}, 0, false},
    {"select", filter_select, {NULL}, 0, true},
    {"selectattr", filter_selectattr, {NULL}, 0, true},
    {"sort", filter_sort, {"reverse", "case_sensitive", "attribute"}, 0, false},
    {"sum", filter_sum, {"attribute", "start"}, 0, false},
    {"unique", filter_unique, {"case_sensitive", "attribute"}, 0, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_sequence_filter(struct xm_slice name)
{
    return xm_jinja_find(filters, XM_ARRAY_LEN(filters), name);
}
