/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings, mappings, lists and `loop`. Those that would change a value in place
 * do not exist.
 */
#include "plugin/text/jinja/format.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

/* --- strings --- */

static enum xm_status
fail_not_text(struct xm_jinja_run *r, value v)
{
    return xm_jinja_fail(r, "a string method got %s, expected a string",
                         xm_jinja_kind_name(v.kind));
}

static enum xm_status
strip(struct xm_jinja_run *r, value self, args *a, int sides, value *out)
{
    value chars = a->values[0];
    bool white = chars.kind == XM_JINJA_ABSENT || chars.kind == XM_JINJA_NONE;
    if (!white && chars.kind != XM_JINJA_STRING)
        return fail_not_text(r, chars);
    return xm_jinja_strip_text(r, self.text, white ? NULL : &chars.text, sides, out);
}

static enum xm_status
string_strip(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return strip(r, self, a, XM_JINJA_LEFT | XM_JINJA_RIGHT, out);
}

static enum xm_status
string_lstrip(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return strip(r, self, a, XM_JINJA_LEFT, out);
}

static enum xm_status
string_rstrip(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return strip(r, self, a, XM_JINJA_RIGHT, out);
}

static enum xm_status
change_case(struct xm_jinja_run *r, value self, enum xm_jinja_case to, value *out)
{
    struct xm_jinja_buffer b = {0};
    xm_jinja_change_case(r, self.text, to, &b);
    return xm_jinja_take_text(r, &b, out);
}

static enum xm_status
string_upper(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_UPPER, out);
}

static enum xm_status
string_lower(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_LOWER, out);
}

static enum xm_status
string_title(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_WORDS, out);
}

static enum xm_status
string_capitalize(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_CAPITAL, out);
}

/* One text or a tuple of texts, of which one must fit. */
static enum xm_status
has_end(struct xm_jinja_run *r, value self, args *a, bool front, value *out)
{
    const struct xm_jinja_list one = {1, &a->values[0]};
    const struct xm_jinja_list *all =
        a->values[0].kind == XM_JINJA_TUPLE ? a->values[0].list : &one;
    *out = xm_jinja_bool(false);
    XM_TRY(xm_jinja_charge(r, all->n));
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i].kind != XM_JINJA_STRING)
            return fail_not_text(r, all->items[i]);
        struct xm_slice part = all->items[i].text;
        if (part.n > self.text.n)
            continue;
        XM_TRY(xm_jinja_charge_text(r, part.n));
        struct xm_slice end = {
            front ? self.text.text : self.text.text + (self.text.n - part.n), part.n};
        out->truth = out->truth || xm_slice_equal(end, part);
    }
    return XM_OK;
}

static enum xm_status
string_startswith(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return has_end(r, self, a, true, out);
}

static enum xm_status
string_endswith(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return has_end(r, self, a, false, out);
}

static enum xm_status
string_replace(struct xm_jinja_run *r, value self, args *a, value *out)
{
    for (int i = 0; i < 2; i++)
        if (a->values[i].kind != XM_JINJA_STRING)
            return fail_not_text(r, a->values[i]);
    int64_t count = a->values[2].kind == XM_JINJA_INT ? a->values[2].integer : -1;
    return xm_jinja_replace(r, self.text, a->values[0].text, a->values[1].text, count,
                            out);
}

static enum xm_status
string_find(struct xm_jinja_run *r, value self, args *a, value *out)
{
    size_t at;
    if (a->values[0].kind != XM_JINJA_STRING)
        return fail_not_text(r, a->values[0]);
    XM_TRY(xm_jinja_find_text(r, self.text, a->values[0].text, 0, &at));
    *out = xm_jinja_int(
        at == SIZE_MAX ? -1 : (int64_t)xm_jinja_count(xm_slice_of(self.text.text, at)));
    return XM_OK;
}

static enum xm_status
string_count(struct xm_jinja_run *r, value self, args *a, value *out)
{
    int64_t n = 0;
    size_t from = 0, at;
    if (a->values[0].kind != XM_JINJA_STRING)
        return fail_not_text(r, a->values[0]);
    struct xm_slice what = a->values[0].text;
    if (what.n == 0) {
        *out = xm_jinja_int((int64_t)xm_jinja_count(self.text) + 1);
        return XM_OK;
    }
    for (;; n++) {
        XM_TRY(xm_jinja_find_text(r, self.text, what, from, &at));
        if (at == SIZE_MAX)
            break;
        from = at + what.n;
    }
    *out = xm_jinja_int(n);
    return XM_OK;
}

/* Parts of a text, collected without knowing how many there will be. */
struct parts {
    struct xm_jinja_run *r;
    struct xm_jinja_value *items;
    size_t n, capacity;
};

static enum xm_status
add_part(struct parts *p, struct xm_slice part)
{
    XM_TRY(xm_jinja_charge(p->r, 1));
    if (p->n == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 8;
        struct xm_jinja_value *items = NULL;
        XM_TRY(xm_jinja_alloc(p->r, capacity, sizeof(*items), &items));
        if (p->n > 0)
            memcpy(items, p->items, p->n * sizeof(*items));
        p->items = items;
        p->capacity = capacity;
    }
    p->items[p->n++] = xm_jinja_text(part);
    return XM_OK;
}

static enum xm_status
parts_to_list(struct parts *p, value *out)
{
    struct xm_jinja_list *list = NULL;
    XM_TRY(xm_jinja_new_list(p->r, 0, &list));
    *list = (struct xm_jinja_list){p->n, p->items};
    *out = xm_jinja_list_value(list);
    return XM_OK;
}

static size_t
word_length(struct xm_slice s)
{
    size_t at = 0;
    while (at < s.n) {
        int32_t code;
        size_t n = xm_utf8_next(xm_slice_of(s.text + at, s.n - at), &code);
        if (xm_jinja_is_space(code))
            break;
        at += n;
    }
    return at;
}

/* At white space: empty parts do not count. max < 0: all. */
static enum xm_status
split_words(struct parts *p, struct xm_slice s, int64_t max)
{
    for (;;) {
        s = xm_jinja_strip(s, NULL, XM_JINJA_LEFT);
        if (s.n == 0)
            return XM_OK;
        if (max-- == 0)
            return add_part(p, xm_jinja_strip(s, NULL, XM_JINJA_RIGHT));
        size_t n = word_length(s);
        XM_TRY(add_part(p, xm_slice_of(s.text, n)));
        s = xm_slice_of(s.text + n, s.n - n);
    }
}

static enum xm_status
split_at(struct parts *p, struct xm_slice s, struct xm_slice separator, int64_t max)
{
    size_t from = 0, at;
    while (max-- != 0) {
        XM_TRY(xm_jinja_find_text(p->r, s, separator, from, &at));
        if (at == SIZE_MAX)
            break;
        XM_TRY(add_part(p, xm_slice_of(s.text + from, at - from)));
        from = at + separator.n;
    }
    return add_part(p, xm_slice_of(s.text + from, s.n - from));
}

/* The last parts of a split without limit, what is before them in one. */
static void
join_front(struct parts *p, struct xm_slice s, int64_t max)
{
    size_t keep = (size_t)max;
    if (max < 0 || p->n <= keep + 1)
        return;
    size_t first = p->n - keep - 1; /* the last of the joined ones */
    const char *end = p->items[first].text.text + p->items[first].text.n;
    struct xm_slice front = {s.text, (size_t)(end - s.text)};
    memmove(p->items + 1, p->items + first + 1, keep * sizeof(*p->items));
    p->items[0] = xm_jinja_text(front);
    p->n = keep + 1;
}

static enum xm_status
split(struct xm_jinja_run *r, value self, args *a, bool from_right, value *out)
{
    struct parts p = {.r = r};
    value separator = a->values[0];
    int64_t max = a->values[1].kind == XM_JINJA_INT ? a->values[1].integer : -1;
    bool words = separator.kind == XM_JINJA_ABSENT || separator.kind == XM_JINJA_NONE;
    if (!words && separator.kind != XM_JINJA_STRING)
        return fail_not_text(r, separator);
    if (!words && separator.text.n == 0)
        return xm_jinja_fail(r, "split at an empty separator");
    if (words)
        XM_TRY(split_words(&p, self.text, from_right ? -1 : max));
    else
        XM_TRY(split_at(&p, self.text, separator.text, from_right ? -1 : max));
    if (from_right)
        join_front(&p, words ? xm_jinja_strip(self.text, NULL, XM_JINJA_LEFT) : self.text,
                   max);
    return parts_to_list(&p, out);
}

static enum xm_status
string_split(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return split(r, self, a, false, out);
}

static enum xm_status
string_rsplit(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return split(r, self, a, true, out);
}

static enum xm_status
string_splitlines(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct parts p = {.r = r};
    bool keep = xm_jinja_truth(a->values[0]);
    for (size_t from = 0; from < self.text.n;) {
        size_t start = from;
        struct xm_slice line = xm_jinja_next_line(self.text, &from);
        line.n = keep ? from - start : line.n;
        XM_TRY(add_part(&p, line));
    }
    return parts_to_list(&p, out);
}

static enum xm_status
string_join(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const struct xm_jinja_args between = {1, 1, &self, NULL};
    return xm_jinja_call_builtin(r, xm_jinja_find_filter(xm_slice_of("join", 4)),
                                 a->values[0], &between, out);
}

static enum xm_status
string_format(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return xm_jinja_format_braces(r, self.text, a, out);
}

/* Whether there are characters and all of them are decimal digits. */
static enum xm_status
string_isdigit(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    bool all = self.text.n > 0;
    for (size_t i = 0; i < self.text.n; i++)
        all = all && self.text.text[i] >= '0' && self.text.text[i] <= '9';
    *out = xm_jinja_bool(all);
    return XM_OK;
}

/* --- mappings, lists, loop --- */

static enum xm_status
dict_items(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    const struct xm_jinja_args none = {0};
    return xm_jinja_call_builtin(r, xm_jinja_find_filter(xm_slice_of("items", 5)), self,
                                 &none, out);
}

static enum xm_status
dict_keys(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    const struct xm_jinja_list *keys = NULL;
    XM_TRY(xm_jinja_iterate(r, self, &keys));
    *out = xm_jinja_list_value(keys);
    return XM_OK;
}

static enum xm_status
dict_values(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_list *values = NULL;
    XM_TRY(xm_jinja_new_list(r, self.dict->n, &values));
    for (size_t i = 0; i < values->n; i++)
        values->items[i] = self.dict->values[i];
    *out = xm_jinja_list_value(values);
    return XM_OK;
}

static enum xm_status
dict_get(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const value *found = NULL;
    XM_TRY(xm_jinja_dict_find(r, self.dict, a->values[0], &found));
    if (found)
        *out = *found;
    else
        *out = a->values[1].kind == XM_JINJA_ABSENT ? xm_jinja_none() : a->values[1];
    return XM_OK;
}

static enum xm_status
count_items(struct xm_jinja_run *r, value self, value what, int64_t *first, int64_t *n)
{
    XM_TRY(xm_jinja_charge(r, self.list->n));
    *first = -1;
    *n = 0;
    for (size_t i = 0; i < self.list->n; i++) {
        bool equal = false;
        XM_TRY(xm_jinja_equal(r, self.list->items[i], what, &equal));
        *first = equal && *n == 0 ? (int64_t)i : *first;
        *n += equal;
    }
    return XM_OK;
}

static enum xm_status
list_index(struct xm_jinja_run *r, value self, args *a, value *out)
{
    int64_t first, n;
    XM_TRY(count_items(r, self, a->values[0], &first, &n));
    *out = xm_jinja_int(first);
    return n > 0 ? XM_OK : xm_jinja_fail(r, "index: the list does not hold that value");
}

static enum xm_status
list_count(struct xm_jinja_run *r, value self, args *a, value *out)
{
    int64_t first, n;
    XM_TRY(count_items(r, self, a->values[0], &first, &n));
    *out = xm_jinja_int(n);
    return XM_OK;
}

static enum xm_status
loop_cycle(struct xm_jinja_run *r, value self, args *a, value *out)
{
    if (a->n == 0)
        return xm_jinja_fail(r, "loop.cycle needs values");
    *out = a->values[self.loop->index % a->n];
    return XM_OK;
}

/* clang-format off */
static const struct xm_jinja_builtin string_methods[] = {
    {"capitalize", string_capitalize, {NULL}, 0, false},
    {"count", string_count, {"sub"}, 1, false},
    {"endswith", string_endswith, {"suffix"}, 1, false},
    {"find", string_find, {"sub"}, 1, false},
    {"format", string_format, {NULL}, 0, true},
    {"isdigit", string_isdigit, {NULL}, 0, false},
    {"join", string_join, {"iterable"}, 1, false},
    {"lower", string_lower, {NULL}, 0, false},
    {"lstrip", string_lstrip, {"chars"}, 0, false},
    {"replace", string_replace, {"old", "new", "count"}, 2, false},
    {"rsplit", string_rsplit, {"sep", "maxsplit"}, 0, false},
    {"rstrip", string_rstrip, {"chars"}, 0, false},
    {"split", string_split, {"sep", "maxsplit"}, 0, false},
    {"splitlines", string_splitlines, {"keepends"}, 0, false},
    {"startswith", string_startswith, {"prefix"}, 1, false},
    {"strip", string_strip, {"chars"}, 0, false},
    {"title", string_title, {NULL}, 0, false},
    {"upper", string_upper, {NULL}, 0, false},
};
static const struct xm_jinja_builtin dict_methods[] = {
    {"get", dict_get, {"key", "default"}, 1, false},
    {"items", dict_items, {NULL}, 0, false},
    {"keys", dict_keys, {NULL}, 0, false},
    {"values", dict_values, {NULL}, 0, false},
};
static const struct xm_jinja_builtin list_methods[] = {
    {"count", list_count, {"value"}, 1, false},
    {"index", list_index, {"value"}, 1, false},
};
static const struct xm_jinja_builtin loop_methods[] = {
    {"cycle", loop_cycle, {NULL}, 0, true},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_method(enum xm_jinja_kind kind, struct xm_slice name)
{
    switch (kind) {
    case XM_JINJA_STRING:
        return xm_jinja_find(string_methods, XM_ARRAY_LEN(string_methods), name);
    case XM_JINJA_DICT:
        return xm_jinja_find(dict_methods, XM_ARRAY_LEN(dict_methods), name);
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        return xm_jinja_find(list_methods, XM_ARRAY_LEN(list_methods), name);
    case XM_JINJA_LOOP:
        return xm_jinja_find(loop_methods, XM_ARRAY_LEN(loop_methods), name);
    default:
        return NULL;
    }
}
