/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that split them.
 */
#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

/* A growing list of parts of a text. */
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
    *list = (struct xm_jinja_list){p->n, p->items, false};
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

/* Splits at white space, at most `max` times (max < 0: always). There are no empty parts. */
static enum xm_status
split_words(struct parts *p, struct xm_slice s, int64_t max)
{
    for (;;) {
        s = xm_jinja_strip(s, NULL, XM_JINJA_LEFT);
        if (s.n == 0)
            return XM_OK;
        if (max-- == 0)
            return add_part(p, s);
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

/* Turns an unlimited split into one from the right: joins all but the last `max` parts. */
static void
join_front(struct parts *p, struct xm_slice s, int64_t max)
{
    size_t keep = (size_t)max;
    if (max < 0 || p->n <= keep + 1)
        return;
    size_t first = p->n - keep - 1; /* index of the last part to join */
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
    int64_t max = -1;
    XM_TRY(xm_jinja_read_size(r, a->values[1], &max));
    bool words = separator.kind == XM_JINJA_ABSENT || separator.kind == XM_JINJA_NONE;
    if (!words && separator.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, separator);
    if (!words && separator.text.n == 0)
        return xm_jinja_fail(r, "the separator of split is empty");
    if (words)
        XM_TRY(split_words(&p, self.text, from_right ? -1 : max));
    else
        XM_TRY(split_at(&p, self.text, separator.text, from_right ? -1 : max));
    if (from_right)
        join_front(&p, self.text, max);
    return parts_to_list(&p, out);
}

enum xm_status
xm_jinja_string_split(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return split(r, self, a, false, out);
}

enum xm_status
xm_jinja_string_rsplit(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return split(r, self, a, true, out);
}

enum xm_status
xm_jinja_string_splitlines(struct xm_jinja_run *r, value self, args *a, value *out)
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

/* partition() and rpartition(): a tuple of the text before the separator, the separator, and the
 * text behind it. */
static enum xm_status
partition(struct xm_jinja_run *r, value self, args *a, bool from_right, value *out)
{
    struct xm_jinja_list *three = NULL;
    const value separator = a->values[0];
    size_t at = SIZE_MAX;
    if (separator.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, separator);
    if (separator.text.n == 0)
        return xm_jinja_fail(r, "the separator of split is empty");
    XM_TRY((from_right ? xm_jinja_find_last_text
                       : xm_jinja_find_text)(r, self.text, separator.text, 0, &at));
    XM_TRY(xm_jinja_new_list(r, 3, &three));
    for (size_t i = 0; i < 3; i++)
        three->items[i] = xm_jinja_text(xm_slice_of("", 0));
    if (at == SIZE_MAX) {
        three->items[from_right ? 2 : 0] = self;
    } else {
        const size_t end = at + separator.text.n;
        three->items[0] = xm_jinja_text(xm_slice_of(self.text.text, at));
        three->items[1] = separator;
        three->items[2] =
            xm_jinja_text(xm_slice_of(self.text.text + end, self.text.n - end));
    }
    *out = (value){.kind = XM_JINJA_TUPLE, .list = three};
    return XM_OK;
}

enum xm_status
xm_jinja_string_partition(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return partition(r, self, a, false, out);
}

enum xm_status
xm_jinja_string_rpartition(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return partition(r, self, a, true, out);
}
