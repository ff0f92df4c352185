/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's two ways to format: "%-5s" % value, and "{:>5}".format(value).
 *
 * Both come down to a field: a value with a conversion, a precision, a sign and a width. Not done:
 * "{}" inside a format specification.
 */
#include "plugin/text/jinja/format.h"

#include <math.h>

#include "runtime/util/utf8.h"

enum { MAX_WIDTH = 100000, MAX_PRECISION = 100 };

typedef struct xm_jinja_value value;

struct field {
    struct xm_slice fill;     /* one character */
    char align;               /* '<' '>' '^' '=', 0: by the kind of value */
    char sign;                /* '+' ' ' '-' */
    bool has_sign, has_zeros; /* they were given */
    bool alternate;           /* '#' */
    char grouping;            /* ',' '_' or 0 */
    int64_t width, precision; /* precision -1: none */
    char type;                /* 0: by the kind of value */
};

/* ---- a field ---- */

static enum xm_status
fail_type(struct xm_jinja_run *r, char type, value v)
{
    return xm_jinja_fail(r, "format code '%c' for %s", type ? type : 's',
                         xm_jinja_kind_name(v.kind));
}

/* Digits and point, without a sign. */
static enum xm_status
write_integer(struct xm_jinja_run *r, value v, char type, bool alternate,
              struct xm_strbuf *b)
{
    int64_t i = v.kind == XM_JINJA_FLOAT ? (int64_t)v.real : xm_jinja_to_int(v);
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    if (type == 'x' || type == 'X') {
        xm_strbuf_add(b, alternate ? (type == 'x' ? "0x" : "0X") : "");
        xm_strbuf_printf(b, type == 'x' ? "%llx" : "%llX", (unsigned long long)u);
    } else if (type == 'o') {
        xm_strbuf_printf(b, alternate ? "0o%llo" : "%llo", (unsigned long long)u);
    } else if (type == 'b') {
        char bits[64];
        size_t n = 0;
        do {
            bits[n++] = (char)('0' + (u & 1));
            u >>= 1;
        } while (u);
        xm_strbuf_add(b, alternate ? "0b" : "");
        while (n > 0)
            xm_strbuf_add_n(b, &bits[--n], 1);
    } else {
        xm_strbuf_printf(b, "%llu", (unsigned long long)u);
    }
    (void)r;
    return XM_OK;
}

static void
write_real(double real, const struct field *f, struct xm_strbuf *b)
{
    const int precision = f->precision < 0 ? 6 : (int)f->precision;
    real = fabs(real);
    if (!isfinite(real)) {
        bool upper = f->type == 'E' || f->type == 'F' || f->type == 'G';
        xm_strbuf_add(b, isnan(real) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
        return;
    }
    switch (f->type) {
    case 'e':
        xm_strbuf_printf(b, "%.*e", precision, real);
        break;
    case 'E':
        xm_strbuf_printf(b, "%.*E", precision, real);
        break;
    case 'f':
    case 'F':
        xm_strbuf_printf(b, "%.*f", precision, real);
        break;
    case 'g':
        xm_strbuf_printf(b, "%.*g", precision, real);
        break;
    case 'G':
        xm_strbuf_printf(b, "%.*G", precision, real);
        break;
    case '%':
        xm_strbuf_printf(b, "%.*f%%", precision, real * 100.0);
        break;
    default:
        if (f->precision < 0)
            xm_jinja_print_float(real, b);
        else
            xm_strbuf_printf(b, "%.*g", precision, real);
    }
}

/* `digits` with a separator before every third digit of the integer part. */
static void
group(struct xm_slice digits, char separator, struct xm_strbuf *b)
{
    size_t whole = 0;
    while (whole < digits.n && digits.text[whole] >= '0' && digits.text[whole] <= '9')
        whole++;
    for (size_t i = 0; i < digits.n; i++) {
        if (separator && i > 0 && i < whole && (whole - i) % 3 == 0)
            xm_strbuf_add_n(b, &separator, 1);
        xm_strbuf_add_n(b, digits.text + i, 1);
    }
}

/* sign + text, padded to the width in characters. */
static void
pad(const struct xm_jinja_run *r, const struct field *f, struct xm_slice sign,
    struct xm_slice text, char align, struct xm_jinja_buffer *b)
{
    int64_t used = (int64_t)(xm_jinja_count(sign) + xm_jinja_count(text));
    int64_t room = f->width > used ? f->width - used : 0;
    int64_t left = align == '<' ? 0 : align == '^' ? room / 2 : room;
    if (align == '=')
        xm_jinja_add(r, b, sign);
    for (int64_t i = 0; i < left; i++)
        xm_jinja_add(r, b, f->fill);
    if (align != '=')
        xm_jinja_add(r, b, sign);
    xm_jinja_add(r, b, text);
    for (int64_t i = left; i < room; i++)
        xm_jinja_add(r, b, f->fill);
}

static bool
is_negative(value v)
{
    return v.kind == XM_JINJA_FLOAT ? signbit(v.real) && !isnan(v.real)
                                    : xm_jinja_to_int(v) < 0;
}

static enum xm_status
write_number(struct xm_jinja_run *r, const struct field *f, value v,
             struct xm_jinja_buffer *b)
{
    struct xm_strbuf digits = {0}, grouped = {0};
    bool integer = f->type ? strchr("dioxXub", f->type) != NULL
                           : v.kind != XM_JINJA_FLOAT && f->precision < 0;
    const char *sign = is_negative(v)   ? "-"
                       : f->sign == '-' ? ""
                       : f->sign == '+' ? "+"
                                        : " ";
    if (integer)
        XM_TRY(write_integer(r, v, f->type, f->alternate, &digits));
    else
        write_real(xm_jinja_to_double(v), f, &digits);
    group(xm_slice_of(xm_strbuf_text(&digits), digits.n), f->grouping, &grouped);
    pad(r, f, xm_slice_of(sign, strlen(sign)),
        xm_slice_of(xm_strbuf_text(&grouped), grouped.n), f->align ? f->align : '>', b);
    bool ok = xm_strbuf_ok(&digits) && xm_strbuf_ok(&grouped);
    xm_strbuf_free(&digits);
    xm_strbuf_free(&grouped);
    return ok ? xm_jinja_check_size(r, b) : xm_no_memory(r->err, "a template's values");
}

static enum xm_status
write_field(struct xm_jinja_run *r, const struct field *f, value v,
            struct xm_jinja_buffer *b)
{
    struct xm_slice text;
    XM_TRY(xm_jinja_charge(r, 1 + (uint64_t)f->width / 16));
    if (f->type != 's' && xm_jinja_is_number(v) && (v.kind != XM_JINJA_BOOL || f->type))
        return write_number(r, f, v, b);
    if (f->type && f->type != 's')
        return fail_type(r, f->type, v);
    XM_TRY(xm_jinja_to_text(r, v, &text));
    if (f->precision >= 0)
        text.n = xm_jinja_offset(text, (size_t)f->precision);
    pad(r, f, xm_slice_of("", 0), text, f->align ? f->align : '<', b);
    return xm_jinja_check_size(r, b);
}

/* ---- reading ---- */

static bool
read_count(struct xm_slice s, size_t *at, int64_t *out)
{
    bool any = false;
    *out = 0;
    for (; *at < s.n && s.text[*at] >= '0' && s.text[*at] <= '9'; ++*at, any = true)
        *out = *out > MAX_WIDTH ? *out : *out * 10 + (s.text[*at] - '0');
    return any;
}

static char
peek(struct xm_slice s, size_t at)
{
    return at < s.n ? s.text[at] : '\0';
}

static enum xm_status
check_field(struct xm_jinja_run *r, const struct field *f)
{
    if (f->width > MAX_WIDTH || f->precision > MAX_PRECISION)
        return xm_jinja_fail(r, "a format's width is at most %d, its precision %d",
                             MAX_WIDTH, MAX_PRECISION);
    return XM_OK;
}

static enum xm_status
repr_text(struct xm_jinja_run *r, value v, value *out)
{
    struct xm_jinja_buffer b = {0};
    const enum xm_status status = xm_jinja_print_repr(r, v, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}

/* ---- % ---- */

struct operands {
    value all;
    const struct xm_jinja_list *list;
    size_t used;
};

static enum xm_status
next_operand(struct xm_jinja_run *r, struct operands *o, value *out)
{
    if (o->used >= o->list->n)
        return xm_jinja_fail(r, "not enough values for the format");
    *out = o->list->items[o->used++];
    return XM_OK;
}

/* A width or precision: digits, or '*' for the next value. */
static enum xm_status
read_size(struct xm_jinja_run *r, struct xm_slice s, size_t *at, struct operands *o,
          int64_t *out)
{
    value v;
    if (peek(s, *at) != '*') {
        int64_t n;
        if (read_count(s, at, &n))
            *out = n;
        return XM_OK;
    }
    ++*at;
    XM_TRY(next_operand(r, o, &v));
    if (v.kind != XM_JINJA_INT)
        return xm_jinja_fail(r, "'*' of a format needs an integer");
    *out = v.integer < 0 ? 0 : v.integer;
    return XM_OK;
}

/* Of a code point, or a text that is one character. */
static enum xm_status
one_character(struct xm_jinja_run *r, value v, value *out)
{
    struct xm_jinja_buffer b = {0};
    *out = v;
    if (v.kind == XM_JINJA_STRING && xm_jinja_count(v.text) == 1)
        return XM_OK;
    if ((v.kind != XM_JINJA_INT && v.kind != XM_JINJA_BOOL) || xm_jinja_to_int(v) < 0 ||
        xm_jinja_to_int(v) > 0x10ffff)
        return xm_jinja_fail(r, "'%%c' needs one character or its number");
    xm_utf8_add(&b.text, (int32_t)xm_jinja_to_int(v));
    return xm_jinja_take_text(r, &b, out);
}

/* Behind "%". */
static enum xm_status
percent_field(struct xm_jinja_run *r, struct xm_slice s, size_t *at, struct operands *o,
              struct xm_jinja_buffer *b)
{
    struct field f = {.fill = {" ", 1}, .align = '>', .sign = '-', .precision = -1};
    bool named = peek(s, *at) == '(';
    value v;
    if (named) {
        size_t end = *at;
        while (end < s.n && s.text[end] != ')')
            end++;
        if (end == s.n || o->all.kind != XM_JINJA_DICT)
            return xm_jinja_fail(r, "'%%(name)' of a format needs ')' and a mapping");
        XM_TRY(xm_jinja_item(
            r, o->all, xm_jinja_text(xm_slice_of(s.text + *at + 1, end - *at - 1)), &v));
        if (v.kind == XM_JINJA_UNDEFINED)
            return xm_jinja_fail(r, "a format names a key that the mapping has not");
        *at = end + 1;
    }
    for (; strchr("-+ #0", peek(s, *at)) && *at < s.n; ++*at) {
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
    if (peek(s, *at) == '.') {
        ++*at;
        f.precision = 0;
        XM_TRY(read_size(r, s, at, o, &f.precision));
    }
    f.type = peek(s, (*at)++);
    if (f.align == '<')
        f.fill = xm_slice_of(" ", 1);
    XM_TRY(check_field(r, &f));
    if (f.type == '%') {
        xm_strbuf_add(&b->text, "%");
        return XM_OK;
    }
    if (!f.type || !strchr("sradiuoxXeEfFgGc", f.type))
        return xm_jinja_fail(r, "a format with a type that does not exist");
    if (!named)
        XM_TRY(next_operand(r, o, &v));
    if (f.type == 'r' || f.type == 'a')
        XM_TRY(repr_text(r, v, &v));
    if (f.type == 'c')
        XM_TRY(one_character(r, v, &v));
    if (strchr("src", f.type) || f.type == 'a') {
        f.align = f.align == '=' ? '>' : f.align;
        f.fill = xm_slice_of(" ", 1);
        f.type = 's';
    } else if (!xm_jinja_is_number(v)) {
        return fail_type(r, f.type, v);
    } else if (strchr("diu", f.type)) {
        if (v.kind == XM_JINJA_FLOAT && !(fabs(v.real) < 0x1p63))
            return xm_jinja_fail(r, "an integer of more than 64 bits");
        if (v.kind == XM_JINJA_FLOAT)
            v = xm_jinja_int((int64_t)v.real);
        f.type = 'd';
    } else if (strchr("oxX", f.type) && v.kind == XM_JINJA_FLOAT) {
        return fail_type(r, f.type, v);
    }
    return write_field(r, &f, v, b);
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
        o->all.kind == XM_JINJA_UNDEFINED; /* Python takes them for maps */
    if (o->used < o->list->n && !may_be_left)
        return xm_jinja_fail(r, "more values than the format has fields");
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

/* ---- {} ---- */

/* [[fill]align][sign][#][0][width][grouping][.precision][type] */
static enum xm_status
read_spec(struct xm_jinja_run *r, struct xm_slice s, struct field *f)
{
    size_t at = 0, first = s.n > 0 ? xm_jinja_offset(s, 1) : 0;
    *f = (struct field){.fill = {" ", 1}, .sign = '-', .precision = -1};
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
    if (peek(s, at) == '#')
        f->alternate = true, at++;
    if (peek(s, at) == '0' && !f->align) {
        f->has_zeros = true;
        f->fill = xm_slice_of("0", 1);
        at++;
    }
    read_count(s, &at, &f->width);
    if (peek(s, at) == ',' || peek(s, at) == '_')
        f->grouping = s.text[at++];
    if (peek(s, at) == '.') {
        at++;
        if (!read_count(s, &at, &f->precision))
            return xm_jinja_fail(r, "a format has no precision behind '.'");
    }
    if (at < s.n)
        f->type = s.text[at++];
    if (at < s.n || (f->type && !strchr("bdeEfFgGnosxX%", f->type)))
        return xm_jinja_fail(r, "a format specification that does not exist");
    return check_field(r, f);
}

/* The value that "0", "name", "name.part[key]" or nothing names. */
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

/* What stands between "{" and "}". */
static enum xm_status
brace_field(struct xm_jinja_run *r, struct xm_slice s, const struct xm_jinja_args *a,
            size_t *next, struct xm_jinja_buffer *b)
{
    struct field f;
    size_t name = 0;
    value v;
    while (name < s.n && s.text[name] != ':' && s.text[name] != '!')
        name++;
    XM_TRY(find_named(r, xm_slice_of(s.text, name), a, next, &v));
    if (peek(s, name) == '!') {
        const char c = peek(s, name + 1);
        name += 2;
        if (c == 's')
            XM_TRY(text_of(r, v, &v));
        else if (c == 'r' || c == 'a')
            XM_TRY(repr_text(r, v, &v));
        else
            return xm_jinja_fail(r, "a conversion that is none of !r, !s and !a");
    }
    const size_t spec = name < s.n ? name + 1 : s.n;
    XM_TRY(read_spec(r, xm_slice_of(s.text + spec, s.n - spec), &f));
    if (spec < s.n && !xm_jinja_is_number(v) && v.kind != XM_JINJA_STRING)
        return fail_type(r, f.type, v);
    if (xm_jinja_is_number(v) && f.type == 's')
        return fail_type(r, f.type, v);
    if (v.kind == XM_JINJA_STRING &&
        (f.grouping || f.has_sign || f.alternate || f.align == '='))
        return xm_jinja_fail(r, "a sign, '#', '=' or grouping in the format of a string");
    if (f.has_zeros && v.kind != XM_JINJA_STRING)
        f.align = '=';
    if (v.kind == XM_JINJA_BOOL && spec < s.n) /* only without a format it is a word */
        v = xm_jinja_int(v.truth);
    if (f.type == 'n') /* as a locale writes numbers; the one here is "C" */
        f.type = v.kind == XM_JINJA_FLOAT ? 'g' : 'd';
    if (v.kind == XM_JINJA_FLOAT && f.type && strchr("bdoxX", f.type))
        return fail_type(r, f.type, v);
    return write_field(r, &f, v, b);
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
        if (peek(s, at + 1) == c) {
            xm_jinja_add(r, b, xm_slice_of(s.text + at, 1));
            at += 2;
            continue;
        }
        size_t end = ++at;
        while (end < s.n && s.text[end] != '}')
            end++;
        if (c == '}' || end == s.n)
            return xm_jinja_fail(r, "a single '%c' in a format", c);
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
