/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that search for a text, in the whole string or in a part [start, end).
 */
#include "plugin/text/jinja/methods.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

/* The part of a string in which a method searches. */
struct window {
    struct xm_slice text;
    int64_t first; /* number of characters before it */
    bool exists;   /* false: it would begin behind the string's end */
};

static enum xm_status
read_bound(struct xm_jinja_run *r, value v, int64_t n, int64_t *out)
{
    if (v.kind == XM_JINJA_NONE)
        return XM_OK;
    XM_TRY(xm_jinja_read_size(r, v, out));
    *out += *out < 0 ? n : 0;
    *out = *out < 0 ? 0 : *out;
    return XM_OK;
}

static enum xm_status
find_window(struct xm_jinja_run *r, value self, args *a, struct window *out)
{
    const int64_t n = (int64_t)xm_jinja_count(self.text);
    int64_t start = 0, end = n;
    XM_TRY(read_bound(r, a->values[1], n, &start));
    XM_TRY(read_bound(r, a->values[2], n, &end));
    end = end > n ? n : end;
    out->exists = start <= end;
    out->first = start;
    if (!out->exists) {
        out->text = xm_slice_of(self.text.text, 0);
        return XM_OK;
    }
    const size_t from = xm_jinja_offset(self.text, (size_t)start);
    const struct xm_slice rest = {self.text.text + from, self.text.n - from};
    out->text = xm_slice_of(rest.text, xm_jinja_offset(rest, (size_t)(end - start)));
    return XM_OK;
}

/* Sets *out to the first or last position of the text, in characters; -1: not found. */
static enum xm_status
find_in_string(struct xm_jinja_run *r, value self, args *a, bool last, int64_t *out)
{
    struct window w;
    size_t at = SIZE_MAX;
    *out = -1;
    if (a->values[0].kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, a->values[0]);
    XM_TRY(find_window(r, self, a, &w));
    if (!w.exists)
        return XM_OK;
    XM_TRY((last ? xm_jinja_find_last_text
                 : xm_jinja_find_text)(r, w.text, a->values[0].text, 0, &at));
    if (at != SIZE_MAX)
        *out = w.first + (int64_t)xm_jinja_count(xm_slice_of(w.text.text, at));
    return XM_OK;
}

enum xm_status
xm_jinja_string_find(struct xm_jinja_run *r, value self, args *a, value *out)
{
    *out = xm_jinja_int(-1);
    return find_in_string(r, self, a, false, &out->integer);
}

enum xm_status
xm_jinja_string_rfind(struct xm_jinja_run *r, value self, args *a, value *out)
{
    *out = xm_jinja_int(-1);
    return find_in_string(r, self, a, true, &out->integer);
}

static enum xm_status
index_of(struct xm_jinja_run *r, value self, args *a, bool last, value *out)
{
    *out = xm_jinja_int(-1);
    XM_TRY(find_in_string(r, self, a, last, &out->integer));
    return out->integer >= 0
               ? XM_OK
               : xm_jinja_fail(r, "index: the string does not contain this text");
}

enum xm_status
xm_jinja_string_index(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return index_of(r, self, a, false, out);
}

enum xm_status
xm_jinja_string_rindex(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return index_of(r, self, a, true, out);
}

enum xm_status
xm_jinja_string_count(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct window w;
    int64_t n = 0;
    if (a->values[0].kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, a->values[0]);
    const struct xm_slice what = a->values[0].text;
    XM_TRY(find_window(r, self, a, &w));
    if (what.n == 0) {
        *out = xm_jinja_int(w.exists ? (int64_t)xm_jinja_count(w.text) + 1 : 0);
        return XM_OK;
    }
    for (size_t from = 0, at;; n++) {
        XM_TRY(xm_jinja_find_text(r, w.text, what, from, &at));
        if (at == SIZE_MAX)
            break;
        from = at + what.n;
    }
    *out = xm_jinja_int(n);
    return XM_OK;
}

/* startswith() and endswith(): the argument is a text, or a tuple of texts one of which must
 * match. */
static enum xm_status
has_end(struct xm_jinja_run *r, value self, args *a, bool front, value *out)
{
    const struct xm_jinja_list one = {1, &a->values[0], false};
    const struct xm_jinja_list *all =
        a->values[0].kind == XM_JINJA_TUPLE ? a->values[0].list : &one;
    struct window w;
    *out = xm_jinja_bool(false);
    XM_TRY(find_window(r, self, a, &w));
    XM_TRY(xm_jinja_charge(r, all->n));
    for (size_t i = 0; i < all->n && !out->truth; i++) {
        if (all->items[i].kind != XM_JINJA_STRING)
            return xm_jinja_fail_not_text(r, all->items[i]);
        const struct xm_slice part = all->items[i].text;
        if (!w.exists || part.n > w.text.n)
            continue;
        XM_TRY(xm_jinja_charge_text(r, part.n));
        const size_t from = front ? 0 : w.text.n - part.n;
        out->truth = xm_slice_equal(xm_slice_of(w.text.text + from, part.n), part);
    }
    return XM_OK;
}

enum xm_status
xm_jinja_string_startswith(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return has_end(r, self, a, true, out);
}

enum xm_status
xm_jinja_string_endswith(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return has_end(r, self, a, false, out);
}
