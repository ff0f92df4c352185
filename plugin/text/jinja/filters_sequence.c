/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of sequences: first and last item, order, sums.
 */
#include "plugin/text/jinja/filters.h"
#include "runtime/util/hash_index.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;
typedef const struct xm_jinja_list list;

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

/* Sets *out to the first or the last item. */
static enum xm_status
end_item(struct xm_jinja_run *r, value self, bool last, value *out)
{
    list *items = NULL;
    if (self.kind == XM_JINJA_ITERATOR && !last)
        return xm_jinja_take(r, self, out);
    if (self.kind == XM_JINJA_ITERATOR)
        return xm_jinja_fail(r, "an iterator has no last item");
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

/* The filter random. In Jinja the choice is random; here each run makes the same choices, so that a
 * prompt can be reproduced: choice number i of a run is a hash of i. */
static enum xm_status
filter_random(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    list *items = NULL;
    const bool has_items = self.kind == XM_JINJA_STRING || xm_jinja_is_list(self) ||
                           self.kind == XM_JINJA_RANGE || self.kind == XM_JINJA_UNDEFINED;
    if (!has_items)
        return xm_jinja_fail(r, "random is applied to %s, expected a list or a string",
                             xm_jinja_kind_name(self.kind));
    XM_TRY(xm_jinja_iterate(r, self, &items));
    *out = items->n > 0 ? items->items[xm_hash_number(r->n_choices++) % items->n]
                        : xm_jinja_undefined(xm_slice_of("an item of nothing", 18));
    return XM_OK;
}

static enum xm_status
filter_reverse(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    const value backwards[3] = {{0}, {0}, xm_jinja_int(-1)};
    const bool once = self.kind == XM_JINJA_ITERATOR;
    if (self.kind == XM_JINJA_STRING)
        return xm_jinja_slice(r, self, backwards, out);
    XM_TRY(filter_list(r, self, a, &self));
    XM_TRY(xm_jinja_slice(r, self, backwards, out));
    return once ? XM_OK : xm_jinja_new_iterator(r, out->list, out);
}

static enum xm_status
filter_items(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_list *pairs = NULL;
    if (self.kind != XM_JINJA_DICT && self.kind != XM_JINJA_UNDEFINED)
        return xm_jinja_fail(r, "items is applied to %s, expected a mapping",
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
        if (xm_jinja_is_given(attribute))
            XM_TRY(xm_jinja_path(r, item, attribute, NULL, &item));
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

/* Computes one key: the given attribute or, if none is given, the item itself. */
static enum xm_status
one_key(struct xm_jinja_run *r, const struct xm_jinja_key *key, value item,
        value attribute, value *out)
{
    struct xm_jinja_buffer b = {0};
    *out = item;
    if (xm_jinja_is_given(attribute))
        XM_TRY(xm_jinja_path(r, item, attribute, key->other, out));
    if (key->with_case || out->kind != XM_JINJA_STRING)
        return XM_OK;
    xm_jinja_change_case(r, out->text, XM_JINJA_LOWER, &b);
    return xm_jinja_take_text(r, &b, out);
}

enum xm_status
xm_jinja_key_of(struct xm_jinja_run *r, const struct xm_jinja_key *key, value item,
                value *out)
{
    struct xm_jinja_list *several = NULL;
    size_t n = 1;
    const bool text = key->attribute.kind == XM_JINJA_STRING;
    struct xm_slice rest = text ? key->attribute.text : xm_slice_of("", 0);
    for (size_t i = 0; i < rest.n; i++)
        n += rest.text[i] == ',';
    if (!key->many)
        return one_key(r, key, item, key->attribute, out);
    XM_TRY(xm_jinja_new_list(r, n, &several));
    for (size_t i = 0; i < n; i++) {
        const char *comma = rest.n > 0 ? memchr(rest.text, ',', rest.n) : NULL;
        const struct xm_slice part = {rest.text,
                                      comma ? (size_t)(comma - rest.text) : rest.n};
        XM_TRY(one_key(r, key, item, text ? xm_jinja_text(part) : key->attribute,
                       &several->items[i]));
        if (comma)
            rest = xm_slice_of(comma + 1, rest.n - part.n - 1);
    }
    *out = xm_jinja_list_value(several);
    return XM_OK;
}

struct keyed {
    value key, item;
};

/* Merges two adjacent sorted runs; equal keys keep their order. */
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

/* Sorts by a bottom-up merge sort. */
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

enum xm_status
xm_jinja_sort(struct xm_jinja_run *r, list *items, const struct xm_jinja_key *key,
              bool descending, struct xm_jinja_list **out)
{
    struct keyed *keyed = NULL;
    XM_TRY(xm_jinja_alloc(r, items->n, sizeof(*keyed), &keyed));
    for (size_t i = 0; i < items->n; i++) {
        keyed[i].item = items->items[i];
        XM_TRY(xm_jinja_key_of(r, key, items->items[i], &keyed[i].key));
    }
    XM_TRY(sort_keyed(r, keyed, items->n, descending));
    XM_TRY(xm_jinja_new_list(r, items->n, out));
    for (size_t i = 0; i < items->n; i++)
        (*out)->items[i] = keyed[i].item;
    return XM_OK;
}

static enum xm_status
filter_sort(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *sorted = NULL;
    const struct xm_jinja_key key = {.attribute = a->values[2],
                                     .with_case = xm_jinja_truth(a->values[1]),
                                     .many = true};
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_sort(r, items, &key, xm_jinja_truth(a->values[0]), &sorted));
    *out = xm_jinja_list_value(sorted);
    return XM_OK;
}

static enum xm_status
filter_dictsort(struct xm_jinja_run *r, value self, args *a, value *out)
{
    value pairs;
    struct xm_jinja_list *sorted = NULL;
    const bool named = a->values[1].kind == XM_JINJA_STRING;
    const bool by_value = named && xm_jinja_is(a->values[1].text, "value");
    const struct xm_jinja_key key = {.attribute = xm_jinja_int(by_value),
                                     .with_case = xm_jinja_truth(a->values[0])};
    if (a->values[1].kind != XM_JINJA_ABSENT && !by_value &&
        !(named && xm_jinja_is(a->values[1].text, "key")))
        return xm_jinja_fail(r, "dictsort sorts by 'key' or 'value'");
    if (self.kind != XM_JINJA_DICT)
        return xm_jinja_fail(r, "dictsort is applied to %s, expected a mapping",
                             xm_jinja_kind_name(self.kind));
    XM_TRY(filter_items(r, self, a, &pairs));
    XM_TRY(xm_jinja_sort(r, pairs.list, &key, xm_jinja_truth(a->values[2]), &sorted));
    *out = xm_jinja_list_value(sorted);
    return XM_OK;
}

static enum xm_status
filter_unique(struct xm_jinja_run *r, value self, args *a, value *out)
{
    list *items = NULL;
    struct xm_jinja_list *kept = NULL, *keys = NULL;
    const struct xm_jinja_key key = {.attribute = a->values[1],
                                     .with_case = xm_jinja_truth(a->values[0])};
    size_t n = 0;
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_new_list(r, items->n, &kept));
    XM_TRY(xm_jinja_new_list(r, items->n, &keys));
    for (size_t i = 0; i < items->n; i++) {
        bool seen = false;
        XM_TRY(xm_jinja_key_of(r, &key, items->items[i], &keys->items[n]));
        XM_TRY(xm_jinja_check_key(r, keys->items[n]));
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
    const struct xm_jinja_key by = {.attribute = a->values[1],
                                    .with_case = xm_jinja_truth(a->values[0])};
    value best = {0};
    XM_TRY(xm_jinja_iterate(r, self, &items));
    XM_TRY(xm_jinja_charge(r, items->n));
    *out = xm_jinja_undefined(xm_slice_of("an item of nothing", 18));
    for (size_t i = 0; i < items->n; i++) {
        value key;
        int order = 1;
        XM_TRY(xm_jinja_key_of(r, &by, items->items[i], &key));
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
    if (sum.kind == XM_JINJA_STRING)
        return xm_jinja_fail(r, "strings cannot be summed: use join");
    for (size_t i = 0; i < items->n; i++) {
        value item = items->items[i];
        XM_TRY(xm_jinja_charge(r, 1));
        if (xm_jinja_is_given(a->values[0]))
            XM_TRY(xm_jinja_path(r, item, a->values[0], NULL, &item));
        XM_TRY(xm_jinja_binary(r, xm_slice_of("+", 1), sum, item, &sum));
    }
    *out = sum;
    return XM_OK;
}

/* clang-format off */
static const struct xm_jinja_builtin filters[] = {
    {"count", filter_length, {NULL}, 0, false, false},
    {"dictsort", filter_dictsort, {"case_sensitive", "by", "reverse"}, 0, false, false},
    {"first", filter_first, {NULL}, 0, false, false},
    {"items", filter_items, {NULL}, 0, false, true},
    {"join", filter_join, {"d", "attribute"}, 0, false, false},
    {"last", filter_last, {NULL}, 0, false, false},
    {"length", filter_length, {NULL}, 0, false, false},
    {"list", filter_list, {NULL}, 0, false, false},
    {"max", filter_max, {"case_sensitive", "attribute"}, 0, false, false},
    {"min", filter_min, {"case_sensitive", "attribute"}, 0, false, false},
    {"random", filter_random, {NULL}, 0, false, false},
    {"reverse", filter_reverse, {NULL}, 0, false, false},
    {"sort", filter_sort, {"reverse", "case_sensitive", "attribute"}, 0, false, false},
    {"sum", filter_sum, {"attribute", "start"}, 0, false, false},
    {"unique", filter_unique, {"case_sensitive", "attribute"}, 0, false, true},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_sequence_filter(struct xm_slice name)
{
    return xm_jinja_find(filters, XM_ARRAY_LEN(filters), name);
}
