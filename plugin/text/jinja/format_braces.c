/* SPDX-License-Identifier: Apache-2.0
 *
 * "{:>5}".format(value): Python's str.format().
 *
 *     {[name][!conversion][:spec]}      "{{" is "{", "}}" is "}"
 *
 * Not supported: "{}" inside a format specification.
 */
#include "plugin/text/jinja/format_field.h"

typedef struct xm_jinja_value value;

/* Parses [[fill]align][sign][#][0][width][grouping][.precision][type]. */
static enum xm_status
read_spec(struct xm_jinja_run *r, struct xm_slice s, struct xm_jinja_field *f)
{
    size_t at = 0, first = s.n > 0 ? xm_jinja_offset(s, 1) : 0;
    *f = (struct xm_jinja_field){.fill = {" ", 1}, .sign = '-', .precision = -1};
    if (first < s.n && strchr("<>^=", s.text[first])) {
        f->fill = xm_slice_of(s.text, first);
        f->align = s.text[first];
        at = first + 1;
    } else if (s.n > 0 && strchr("<>^=", s.text[0])) {
        f->align = s.text[at++];
    }
    f->has_sign = at < s.n && strchr("+- ", s.text[at]);
    if (f->has_sign)
        f->sign = s.text[at++];
    if (xm_jinja_peek(s, at) == '#')
        f->alternate = true, at++;
    if (xm_jinja_peek(s, at) == '0' && !f->align) {
        f->has_zeros = true;
        f->fill = xm_slice_of("0", 1);
        at++;
    }
    xm_jinja_read_count(s, &at, &f->width);
    if (xm_jinja_peek(s, at) == ',' || xm_jinja_peek(s, at) == '_')
        f->grouping = s.text[at++];
    if (xm_jinja_peek(s, at) == '.') {
        at++;
        if (!xm_jinja_read_count(s, &at, &f->precision))
            return xm_jinja_fail(r, "a format has no precision after '.'");
    }
    if (at < s.n)
        f->type = s.text[at++];
    if (at < s.n || (f->type && !strchr("bdeEfFgGnosxX%", f->type)))
        return xm_jinja_fail(r, "a format specification is not valid");
    return xm_jinja_check_field(r, f);
}

/* Finds the value named by "0", "name", "name.part[key]" or an empty name (the next value). */
static enum xm_status
find_named(struct xm_jinja_run *r, struct xm_slice name, const struct xm_jinja_args *a,
           size_t *next, value *out)
{
    size_t at = 0;
    int64_t number;
    while (at < name.n && name.text[at] != '.' && name.text[at] != '[')
        at++;
    struct xm_slice first = {name.text, at};
    *out = (value){0};
    if (first.n == 0)
        number = (int64_t)(*next)++;
    if (first.n == 0 || xm_jinja_read_int(first, &number)) {
        if (number >= 0 && (uint64_t)number < a->n_positional)
            *out = a->values[number];
    } else {
        for (size_t i = a->n_positional; i < a->n; i++)
            if (xm_slice_equal(a->names[i], first))
                *out = a->values[i];
    }
    if (out->kind == XM_JINJA_ABSENT)
        return xm_jinja_fail(r, "a format names a value that is not given");
    while (at < name.n) {
        const char end = name.text[at] == '[' ? ']' : '\0';
        size_t begin = ++at;
        while (at < name.n && (end ? name.text[at] != end
                                   : name.text[at] != '.' && name.text[at] != '['))
            at++;
        struct xm_slice part = {name.text + begin, at - begin};
        if (end && xm_jinja_read_int(part, &number))
            XM_TRY(xm_jinja_item(r, *out, xm_jinja_int(number), out));
        else if (end)
            XM_TRY(xm_jinja_item(r, *out, xm_jinja_text(part), out));
        else
            XM_TRY(xm_jinja_attribute(r, *out, part, out));
        at += end && at < name.n;
    }
    return XM_OK;
}

static enum xm_status
text_of(struct xm_jinja_run *r, value v, value *out)
{
    struct xm_slice text;
    XM_TRY(xm_jinja_to_text(r, v, &text));
    *out = xm_jinja_text(text);
    return XM_OK;
}

/* Writes the field whose text between "{" and "}" is `s`. *next: index of the next value for fields
 * without a name. */
static enum xm_status
brace_field(struct xm_jinja_run *r, struct xm_slice s, const struct xm_jinja_args *a,
            size_t *next, struct xm_jinja_buffer *b)
{
    struct xm_jinja_field f;
    size_t name = 0;
    value v;
    while (name < s.n && s.text[name] != ':' && s.text[name] != '!')
        name++;
    XM_TRY(find_named(r, xm_slice_of(s.text, name), a, next, &v));
    if (xm_jinja_peek(s, name) == '!') {
        const char c = xm_jinja_peek(s, name + 1);
        name += 2;
        if (c == 's')
            XM_TRY(text_of(r, v, &v));
        else if (c == 'r' || c == 'a')
            XM_TRY(xm_jinja_repr_text(r, v, &v));
        else
            return xm_jinja_fail(r, "a conversion of a format is not !r, !s or !a");
    }
    const size_t spec = name < s.n ? name + 1 : s.n;
    XM_TRY(read_spec(r, xm_slice_of(s.text + spec, s.n - spec), &f));
    if (spec < s.n && !xm_jinja_is_number(v) && v.kind != XM_JINJA_STRING)
        return xm_jinja_fail_format_type(r, f.type, v);
    if (xm_jinja_is_number(v) && f.type == 's')
        return xm_jinja_fail_format_type(r, f.type, v);
    if (v.kind == XM_JINJA_STRING &&
        (f.grouping || f.has_sign || f.alternate || f.align == '='))
        return xm_jinja_fail(
            r, "the format of a string cannot have a sign, '#', '=' or grouping");
    if (f.has_zeros && v.kind != XM_JINJA_STRING)
        f.align = '=';
    /* "True" is written only without a format */
    if (v.kind == XM_JINJA_BOOL && spec < s.n)
        v = xm_jinja_int(v.truth);
    if (f.type == 'n') /* 'n' depends on the locale, here "C" */
        f.type = v.kind == XM_JINJA_FLOAT ? 'g' : 'd';
    if (v.kind == XM_JINJA_FLOAT && f.type && strchr("bdoxX", f.type))
        return xm_jinja_fail_format_type(r, f.type, v);
    return xm_jinja_write_field(r, &f, v, b);
}

static enum xm_status
brace_all(struct xm_jinja_run *r, struct xm_slice s, const struct xm_jinja_args *a,
          struct xm_jinja_buffer *b)
{
    size_t next = 0;
    for (size_t at = 0; at < s.n;) {
        const char c = s.text[at];
        if (c != '{' && c != '}') {
            size_t from = at;
            while (at < s.n && s.text[at] != '{' && s.text[at] != '}')
                at++;
            xm_jinja_add(r, b, xm_slice_of(s.text + from, at - from));
            continue;
        }
        if (xm_jinja_peek(s, at + 1) == c) {
            xm_jinja_add(r, b, xm_slice_of(s.text + at, 1));
            at += 2;
            continue;
        }
        size_t end = ++at;
        while (end < s.n && s.text[end] != '}')
            end++;
        if (c == '}' || end == s.n)
            return xm_jinja_fail(r, "a format has a single '%c'", c);
        XM_TRY(brace_field(r, xm_slice_of(s.text + at, end - at), a, &next, b));
        at = end + 1;
    }
    return XM_OK;
}

enum xm_status
xm_jinja_format_braces(struct xm_jinja_run *r, struct xm_slice format,
                       const struct xm_jinja_args *args, value *out)
{
    struct xm_jinja_buffer b = {0};
    const enum xm_status status = brace_all(r, format, args, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}
