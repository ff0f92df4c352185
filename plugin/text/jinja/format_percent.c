/* SPDX-License-Identifier: Apache-2.0
 *
 * "%-5s" % value: Python's printf-style formatting of strings.
 *
 *     %[(name)][flags][width][.precision]type      flags: - + space # 0      "%%" is "%"
 */
#include <math.h>

#include "plugin/text/jinja/format_field.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;

struct operands {
    value all;
    const struct xm_jinja_list *list;
    size_t used;
};

static enum xm_status
next_operand(struct xm_jinja_run *r, struct operands *o, value *out)
{
    if (o->used >= o->list->n)
        return xm_jinja_fail(r, "the format has more fields than values");
    *out = o->list->items[o->used++];
    return XM_OK;
}

/* Reads a width or precision: digits, or '*' for the next value. */
static enum xm_status
read_size(struct xm_jinja_run *r, struct xm_slice s, size_t *at, struct operands *o,
          int64_t *out)
{
    value v;
    if (xm_jinja_peek(s, *at) != '*') {
        int64_t n;
        if (xm_jinja_read_count(s, at, &n))
            *out = n;
        return XM_OK;
    }
    ++*at;
    XM_TRY(next_operand(r, o, &v));
    if (v.kind != XM_JINJA_INT)
        return xm_jinja_fail(r, "'*' in a format needs an integer");
    *out = v.integer < 0 ? 0 : v.integer;
    return XM_OK;
}

/* Converts for %c: an integer to the character with this code point; a string of one character
 * stays. */
static enum xm_status
one_character(struct xm_jinja_run *r, value v, value *out)
{
    struct xm_jinja_buffer b = {0};
    *out = v;
    if (v.kind == XM_JINJA_STRING && xm_jinja_count(v.text) == 1)
        return XM_OK;
    if ((v.kind != XM_JINJA_INT && v.kind != XM_JINJA_BOOL) || xm_jinja_to_int(v) < 0 ||
        xm_jinja_to_int(v) > 0x10ffff)
        return xm_jinja_fail(r, "'%%c' needs one character or a code point");
    xm_utf8_add(&b.text, (int32_t)xm_jinja_to_int(v));
    return xm_jinja_take_text(r, &b, out);
}

/* Writes the field whose format begins at byte *at, behind "%"; moves *at behind it. */
static enum xm_status
percent_field(struct xm_jinja_run *r, struct xm_slice s, size_t *at, struct operands *o,
              struct xm_jinja_buffer *b)
{
    struct xm_jinja_field f = {
        .fill = {" ", 1}, .align = '>', .sign = '-', .precision = -1};
    bool named = xm_jinja_peek(s, *at) == '(';
    value v;
    if (named) {
        size_t end = *at;
        while (end < s.n && s.text[end] != ')')
            end++;
        if (end == s.n || o->all.kind != XM_JINJA_DICT)
            return xm_jinja_fail(
                r, "'%%(name)' in a format needs a closing ')' and a mapping");
        XM_TRY(xm_jinja_item(
            r, o->all, xm_jinja_text(xm_slice_of(s.text + *at + 1, end - *at - 1)), &v));
        if (v.kind == XM_JINJA_UNDEFINED)
            return xm_jinja_fail(r,
                                 "a format names a key that the mapping does not have");
        *at = end + 1;
    }
    for (; strchr("-+ #0", xm_jinja_peek(s, *at)) && *at < s.n; ++*at) {
        char c = s.text[*at];
        if (c == '-')
            f.align = '<';
        else if (c == '0' && f.align != '<')
            f.align = '=', f.fill = xm_slice_of("0", 1);
        else if (c == '#')
            f.alternate = true;
        else if (c == '+' || (c == ' ' && f.sign != '+'))
            f.sign = c;
    }
    XM_TRY(read_size(r, s, at, o, &f.width));
    if (xm_jinja_peek(s, *at) == '.') {
        ++*at;
        f.precision = 0;
        XM_TRY(read_size(r, s, at, o, &f.precision));
    }
    f.type = xm_jinja_peek(s, (*at)++);
    if (f.align == '<')
        f.fill = xm_slice_of(" ", 1);
    XM_TRY(xm_jinja_check_field(r, &f));
    if (f.type == '%') {
        xm_strbuf_add(&b->text, "%");
        return XM_OK;
    }
    if (!f.type || !strchr("sradiuoxXeEfFgGc", f.type))
        return xm_jinja_fail(r, "a format has an unknown type");
    if (!named)
        XM_TRY(next_operand(r, o, &v));
    if (f.type == 'r' || f.type == 'a')
        XM_TRY(xm_jinja_repr_text(r, v, &v));
    if (f.type == 'c')
        XM_TRY(one_character(r, v, &v));
    if (strchr("src", f.type) || f.type == 'a') {
        f.align = f.align == '=' ? '>' : f.align;
        f.fill = xm_slice_of(" ", 1);
        f.type = 's';
    } else if (!xm_jinja_is_number(v)) {
        return xm_jinja_fail_format_type(r, f.type, v);
    } else if (strchr("diu", f.type)) {
        if (v.kind == XM_JINJA_FLOAT && !(fabs(v.real) < 0x1p63))
            return xm_jinja_fail(r, "an integer has more than 64 bits");
        if (v.kind == XM_JINJA_FLOAT)
            v = xm_jinja_int((int64_t)v.real);
        f.type = 'd';
    } else if (strchr("oxX", f.type) && v.kind == XM_JINJA_FLOAT) {
        return xm_jinja_fail_format_type(r, f.type, v);
    }
    return xm_jinja_write_field(r, &f, v, b);
}

static enum xm_status
percent_all(struct xm_jinja_run *r, struct xm_slice s, struct operands *o,
            struct xm_jinja_buffer *b)
{
    for (size_t at = 0, from = 0; at < s.n || from < s.n;) {
        while (at < s.n && s.text[at] != '%')
            at++;
        xm_jinja_add(r, b, xm_slice_of(s.text + from, at - from));
        if (at == s.n)
            break;
        at++;
        XM_TRY(percent_field(r, s, &at, o, b));
        from = at;
    }
    const bool may_be_left =
        o->all.kind == XM_JINJA_DICT || o->all.kind == XM_JINJA_LIST ||
        o->all.kind == XM_JINJA_RANGE ||
        o->all.kind == XM_JINJA_UNDEFINED; /* Python treats these like mappings */
    if (o->used < o->list->n && !may_be_left)
        return xm_jinja_fail(r, "the format has fewer fields than values");
    return XM_OK;
}

enum xm_status
xm_jinja_format_percent(struct xm_jinja_run *r, struct xm_slice format, value v,
                        value *out)
{
    struct xm_jinja_list one = {.n = 1, .items = &v};
    struct operands o = {.all = v, .list = v.kind == XM_JINJA_TUPLE ? v.list : &one};
    struct xm_jinja_buffer b = {0};
    const enum xm_status status = percent_all(r, format, &o, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}
