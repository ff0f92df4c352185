/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of string methods, and the methods that strip, replace, join and change case.
 */
#include "plugin/text/jinja/format.h"
#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

enum xm_status
xm_jinja_fail_not_text(struct xm_jinja_run *r, value v)
{
    return xm_jinja_fail(r, "the argument of a string method is %s, expected a string",
                         xm_jinja_kind_name(v.kind));
}

static enum xm_status
strip(struct xm_jinja_run *r, value self, args *a, int sides, value *out)
{
    value chars = a->values[0];
    bool white = chars.kind == XM_JINJA_ABSENT || chars.kind == XM_JINJA_NONE;
    if (!white && chars.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, chars);
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

static enum xm_status
string_swapcase(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_SWAPPED, out);
}

static enum xm_status
string_casefold(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_FOLDED, out);
}

enum xm_status
xm_jinja_read_size(struct xm_jinja_run *r, value v, int64_t *out)
{
    if (v.kind == XM_JINJA_ABSENT)
        return XM_OK;
    if (v.kind != XM_JINJA_INT && v.kind != XM_JINJA_BOOL)
        return xm_jinja_fail(r, "a count is %s, expected an integer",
                             xm_jinja_kind_name(v.kind));
    *out = xm_jinja_to_int(v);
    return XM_OK;
}

static enum xm_status
string_replace(struct xm_jinja_run *r, value self, args *a, value *out)
{
    for (int i = 0; i < 2; i++)
        if (a->values[i].kind != XM_JINJA_STRING)
            return xm_jinja_fail_not_text(r, a->values[i]);
    int64_t count = -1;
    XM_TRY(xm_jinja_read_size(r, a->values[2], &count));
    return xm_jinja_replace(r, self.text, a->values[0].text, a->values[1].text, count,
                            out);
}

/* Removes a prefix (`front`) or a suffix, if the string has it. */
static enum xm_status
remove_end(struct xm_jinja_run *r, value self, args *a, bool front, value *out)
{
    if (a->values[0].kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, a->values[0]);
    const struct xm_slice part = a->values[0].text;
    struct xm_slice s = self.text;
    *out = self;
    if (part.n > s.n)
        return XM_OK;
    if (front && xm_slice_starts_with(s, part))
        *out = xm_jinja_text(xm_slice_of(s.text + part.n, s.n - part.n));
    else if (!front && xm_slice_equal(xm_slice_of(s.text + (s.n - part.n), part.n), part))
        *out = xm_jinja_text(xm_slice_of(s.text, s.n - part.n));
    return XM_OK;
}

static enum xm_status
string_removeprefix(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return remove_end(r, self, a, true, out);
}

static enum xm_status
string_removesuffix(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return remove_end(r, self, a, false, out);
}

static enum xm_status
string_join(struct xm_jinja_run *r, value self, args *a, value *out)
{
    const struct xm_jinja_list *items = NULL;
    struct xm_jinja_buffer b = {0};
    XM_TRY(xm_jinja_iterate(r, a->values[0], &items));
    for (size_t i = 0; i < items->n; i++)
        if (items->items[i].kind != XM_JINJA_STRING)
            return xm_jinja_fail_not_text(r, items->items[i]);
    for (size_t i = 0; i < items->n && b.text.n <= r->limits->output_bytes; i++) {
        if (i > 0)
            xm_jinja_add(r, &b, self.text);
        xm_jinja_add(r, &b, items->items[i].text);
    }
    return xm_jinja_take_text(r, &b, out);
}

static enum xm_status
string_format(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return xm_jinja_format_braces(r, self.text, a, out);
}

/* format_map(): calls format() with the members of a mapping as named arguments. */
static enum xm_status
string_format_map(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_args named = {0};
    if (a->values[0].kind != XM_JINJA_DICT)
        return xm_jinja_fail(r, "format_map needs a mapping");
    const struct xm_jinja_dict *d = a->values[0].dict;
    XM_TRY(xm_jinja_alloc(r, d->n, sizeof(*named.values), &named.values));
    XM_TRY(xm_jinja_alloc(r, d->n, sizeof(*named.names), &named.names));
    for (size_t i = 0; i < d->n; i++)
        if (d->keys[i].kind == XM_JINJA_STRING) {
            named.values[named.n] = d->values[i];
            named.names[named.n++] = d->keys[i].text;
        }
    return xm_jinja_format_braces(r, self.text, &named, out);
}

/* clang-format off */
static const struct xm_jinja_builtin methods[] = {
    {"capitalize", string_capitalize, {NULL}, 0, false, false},
    {"casefold", string_casefold, {NULL}, 0, false, false},
    {"center", xm_jinja_string_center, {"width", "fillchar"}, 1, false, false},
    {"count", xm_jinja_string_count, {"sub", "start", "end"}, 1, false, false},
    {"endswith", xm_jinja_string_endswith, {"suffix", "start", "end"}, 1, false, false},
    {"expandtabs", xm_jinja_string_expandtabs, {"tabsize"}, 0, false, false},
    {"find", xm_jinja_string_find, {"sub", "start", "end"}, 1, false, false},
    {"format", string_format, {NULL}, 0, true, false},
    {"format_map", string_format_map, {"mapping"}, 1, false, false},
    {"index", xm_jinja_string_index, {"sub", "start", "end"}, 1, false, false},
    {"isalnum", xm_jinja_string_isalnum, {NULL}, 0, false, false},
    {"isalpha", xm_jinja_string_isalpha, {NULL}, 0, false, false},
    {"isascii", xm_jinja_string_isascii, {NULL}, 0, false, false},
    {"isdecimal", xm_jinja_string_isdecimal, {NULL}, 0, false, false},
    {"isdigit", xm_jinja_string_isdigit, {NULL}, 0, false, false},
    {"isidentifier", xm_jinja_string_isidentifier, {NULL}, 0, false, false},
    {"islower", xm_jinja_string_islower, {NULL}, 0, false, false},
    {"isnumeric", xm_jinja_string_isnumeric, {NULL}, 0, false, false},
    {"isprintable", xm_jinja_string_isprintable, {NULL}, 0, false, false},
    {"isspace", xm_jinja_string_isspace, {NULL}, 0, false, false},
    {"istitle", xm_jinja_string_istitle, {NULL}, 0, false, false},
    {"isupper", xm_jinja_string_isupper, {NULL}, 0, false, false},
    {"join", string_join, {"iterable"}, 1, false, false},
    {"ljust", xm_jinja_string_ljust, {"width", "fillchar"}, 1, false, false},
    {"lower", string_lower, {NULL}, 0, false, false},
    {"lstrip", string_lstrip, {"chars"}, 0, false, false},
    {"maketrans", xm_jinja_string_maketrans, {"x", "y", "z"}, 1, false, false},
    {"partition", xm_jinja_string_partition, {"sep"}, 1, false, false},
    {"removeprefix", string_removeprefix, {"prefix"}, 1, false, false},
    {"removesuffix", string_removesuffix, {"suffix"}, 1, false, false},
    {"replace", string_replace, {"old", "new", "count"}, 2, false, false},
    {"rfind", xm_jinja_string_rfind, {"sub", "start", "end"}, 1, false, false},
    {"rindex", xm_jinja_string_rindex, {"sub", "start", "end"}, 1, false, false},
    {"rjust", xm_jinja_string_rjust, {"width", "fillchar"}, 1, false, false},
    {"rpartition", xm_jinja_string_rpartition, {"sep"}, 1, false, false},
    {"rsplit", xm_jinja_string_rsplit, {"sep", "maxsplit"}, 0, false, false},
    {"rstrip", string_rstrip, {"chars"}, 0, false, false},
    {"split", xm_jinja_string_split, {"sep", "maxsplit"}, 0, false, false},
    {"splitlines", xm_jinja_string_splitlines, {"keepends"}, 0, false, false},
    {"startswith", xm_jinja_string_startswith, {"prefix", "start", "end"}, 1, false, false},
    {"strip", string_strip, {"chars"}, 0, false, false},
    {"swapcase", string_swapcase, {NULL}, 0, false, false},
    {"title", string_title, {NULL}, 0, false, false},
    {"translate", xm_jinja_string_translate, {"table"}, 1, false, false},
    {"upper", string_upper, {NULL}, 0, false, false},
    {"zfill", xm_jinja_string_zfill, {"width"}, 1, false, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_string_method(struct xm_slice name)
{
    return xm_jinja_find(methods, XM_ARRAY_LEN(methods), name);
}
