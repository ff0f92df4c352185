/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of a single value. Filters that lay out text are in filters_text.c, filters of sequences
 * in filters_sequence.c, filters_select.c and filters_group.c.
 */
#include <math.h>

#include "plugin/text/jinja/filters.h"
#include "plugin/text/jinja/format.h"
#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

static enum xm_status
filter_default(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    bool missing = self.kind == XM_JINJA_UNDEFINED ||
                   (xm_jinja_truth(a->values[1]) && !xm_jinja_truth(self));
    value other = a->values[0];
    if (other.kind == XM_JINJA_ABSENT)
        other = xm_jinja_text(xm_slice_of("", 0));
    *out = missing ? other : self;
    return XM_OK;
}

static enum xm_status
filter_trim(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_slice s, chars;
    bool named = xm_jinja_is_given(a->values[0]);
    XM_TRY(xm_jinja_to_text(r, self, &s));
    if (named)
        XM_TRY(xm_jinja_to_text(r, a->values[0], &chars));
    return xm_jinja_strip_text(r, s, named ? &chars : NULL,
                               XM_JINJA_LEFT | XM_JINJA_RIGHT, out);
}

static enum xm_status
change_case(struct xm_jinja_run *r, value self, enum xm_jinja_case to, value *out)
{
    struct xm_jinja_buffer b = {0};
    struct xm_slice s;
    XM_TRY(xm_jinja_to_text(r, self, &s));
    xm_jinja_change_case(r, s, to, &b);
    return xm_jinja_take_text(r, &b, out);
}

static enum xm_status
filter_upper(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_UPPER, out);
}

static enum xm_status
filter_lower(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_LOWER, out);
}

static enum xm_status
filter_capitalize(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return change_case(r, self, XM_JINJA_CAPITAL, out);
}

/* The filter title. Unlike in the method title(), words begin only behind white space and opening
 * brackets. */
static enum xm_status
filter_title(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_buffer b = {0};
    struct xm_slice s;
    XM_TRY(xm_jinja_to_text(r, self, &s));
    bool starts = true;
    while (s.n > 0) {
        int32_t code;
        size_t n = xm_utf8_next(s, &code);
        xm_jinja_change_case(r, xm_slice_of(s.text, n),
                             starts ? XM_JINJA_UPPER : XM_JINJA_LOWER, &b);
        starts =
            xm_jinja_is_space(code) || (code > 0 && code < 128 && strchr("-({[<", code));
        s = xm_slice_of(s.text + n, s.n - n);
    }
    return xm_jinja_take_text(r, &b, out);
}

static enum xm_status
filter_string(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_slice s;
    XM_TRY(xm_jinja_to_text(r, self, &s));
    *out = xm_jinja_text(s);
    return XM_OK;
}

static enum xm_status
filter_safe(struct xm_jinja_run *r, value self, args *a, value *out)
{
    XM_TRY(filter_string(r, self, a, out));
    out->is_safe = true;
    return XM_OK;
}

static enum xm_status
filter_replace(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_slice s, old, to;
    XM_TRY(xm_jinja_to_text(r, self, &s));
    XM_TRY(xm_jinja_to_text(r, a->values[0], &old));
    XM_TRY(xm_jinja_to_text(r, a->values[1], &to));
    int64_t count = -1;
    if (xm_jinja_is_given(a->values[2]))
        XM_TRY(xm_jinja_read_size(r, a->values[2], &count));
    return xm_jinja_replace(r, s, old, to, count, out);
}

static enum xm_status
check_defined(struct xm_jinja_run *r, value v)
{
    return v.kind != XM_JINJA_UNDEFINED
               ? XM_OK
               : xm_jinja_fail(r, "'%.*s' is undefined",
                               (int)(v.text.n < 100 ? v.text.n : 100), v.text.text);
}

static enum xm_status
filter_int(struct xm_jinja_run *r, value self, args *a, value *out)
{
    value other = a->values[0].kind == XM_JINJA_ABSENT ? xm_jinja_int(0) : a->values[0];
    double real = NAN;
    int64_t integer, base = 10;
    XM_TRY(check_defined(r, self));
    XM_TRY(xm_jinja_read_size(r, a->values[1], &base));
    base = base < 0 || base > 36 ? 1 : base; /* base 1, in which no number can be read */
    if (self.kind == XM_JINJA_STRING) {
        struct xm_slice s =
            xm_jinja_strip(self.text, NULL, XM_JINJA_LEFT | XM_JINJA_RIGHT);
        if (xm_jinja_read_int_of(s, (int)base, &integer)) {
            *out = xm_jinja_int(integer);
            return XM_OK;
        }
        if (!xm_jinja_read_float(s, &real))
            real = NAN;
    } else if (self.kind == XM_JINJA_FLOAT) {
        real = self.real;
    } else if (xm_jinja_is_number(self)) {
        *out = xm_jinja_int(xm_jinja_to_int(self));
        return XM_OK;
    }
    bool fits = real > -0x1p63 && real < 0x1p63; /* also false for NaN */
    *out = fits ? xm_jinja_int((int64_t)real) : other;
    return XM_OK;
}

static enum xm_status
filter_float(struct xm_jinja_run *r, value self, args *a, value *out)
{
    double real;
    XM_TRY(check_defined(r, self));
    *out = a->values[0].kind == XM_JINJA_ABSENT ? xm_jinja_float(0.0) : a->values[0];
    if (xm_jinja_is_number(self))
        *out = xm_jinja_float(xm_jinja_to_double(self));
    else if (self.kind == XM_JINJA_STRING &&
             xm_jinja_read_float(
                 xm_jinja_strip(self.text, NULL, XM_JINJA_LEFT | XM_JINJA_RIGHT), &real))
        *out = xm_jinja_float(real);
    return XM_OK;
}

static enum xm_status
filter_abs(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    if (self.kind == XM_JINJA_FLOAT) {
        *out = xm_jinja_float(fabs(self.real));
        return XM_OK;
    }
    *out = self;
    if (!xm_jinja_is_number(self) || xm_jinja_to_int(self) < 0)
        return xm_jinja_unary(r, xm_slice_of("-", 1), self, out);
    *out = xm_jinja_int(xm_jinja_to_int(self));
    return XM_OK;
}

/* Rounds with the method "common": halves to even by the exact value of the number, as Python does.
 * printf rounds the digits this way, and reading them back gives the nearest number. */
static enum xm_status
round_common(struct xm_jinja_run *r, double real, int precision, value *out)
{
    struct xm_strbuf b = {0};
    double scale = pow(10.0, -precision);
    if (precision <= 0) {
        *out = xm_jinja_float(precision == 0 ? rint(real) : rint(real / scale) * scale);
        return XM_OK;
    }
    xm_strbuf_printf(&b, "%.*f", precision, real);
    if (!xm_jinja_read_float(xm_slice_of(xm_strbuf_text(&b), b.n), &real))
        real = rint(real / scale) * scale;
    xm_strbuf_free(&b);
    *out = xm_jinja_float(real);
    (void)r;
    return XM_OK;
}

/* Rounds an integer to tens, hundreds, …; halves to even. */
static int64_t
round_integer(int64_t i, int precision)
{
    int64_t unit = 1;
    for (; precision < 0; precision++) {
        if (unit > INT64_MAX / 20)
            return 0;
        unit *= 10;
    }
    const int64_t rest = (i % unit + unit) % unit, down = i - rest;
    const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
    return up && unit > 1 ? down + unit : down;
}

static enum xm_status
filter_round(struct xm_jinja_run *r, value self, args *a, value *out)
{
    int64_t precision = a->values[0].kind == XM_JINJA_INT ? a->values[0].integer : 0;
    bool has_method = a->values[1].kind == XM_JINJA_STRING;
    struct xm_slice method = has_method ? a->values[1].text : xm_slice_of("common", 6);
    if (!xm_jinja_is_number(self))
        return xm_jinja_fail(r, "round needs a number, found %s",
                             xm_jinja_kind_name(self.kind));
    if (precision < -300 || precision > 300)
        return xm_jinja_fail(r, "round: %lld digits are not supported",
                             (long long)precision);
    double real = xm_jinja_to_double(self), scale = pow(10.0, (double)precision);
    if (xm_jinja_is(method, "common")) {
        if (self.kind == XM_JINJA_FLOAT && isfinite(real))
            return round_common(r, real, (int)precision, out);
        *out = self.kind == XM_JINJA_FLOAT
                   ? self
                   : xm_jinja_int(round_integer(xm_jinja_to_int(self), (int)precision));
        return XM_OK;
    }
    bool up = xm_jinja_is(method, "ceil");
    if (!up && !xm_jinja_is(method, "floor"))
        return xm_jinja_fail(r, "round: the method must be common, ceil or floor");
    const double whole = up ? ceil(real * scale) : floor(real * scale);
    *out = xm_jinja_float((whole == 0.0 ? 0.0 : whole) / scale); /* turns -0 into 0 */
    return XM_OK;
}

static enum xm_status
read_separators(struct xm_jinja_run *r, value v, struct xm_jinja_json_style *style)
{
    const struct xm_jinja_list *pair = NULL;
    if (!xm_jinja_is_given(v))
        return XM_OK;
    XM_TRY(xm_jinja_iterate(r, v, &pair));
    if (pair->n != 2 || pair->items[0].kind != XM_JINJA_STRING ||
        pair->items[1].kind != XM_JINJA_STRING)
        return xm_jinja_fail(r, "tojson's separators must be two strings");
    style->item_separator = pair->items[0].text;
    style->key_separator = pair->items[1].text;
    return XM_OK;
}

static enum xm_status
filter_tojson(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    bool multi_line = xm_jinja_is_given(a->values[1]);
    struct xm_jinja_json_style style = {
        .item_separator = xm_slice_of(", ", multi_line ? 1 : 2),
        .key_separator = xm_slice_of(": ", 2),
        .multi_line = multi_line,
        .ascii = xm_jinja_truth(a->values[0]),
        .sort_keys = xm_jinja_truth(a->values[3]),
    };
    if (multi_line)
        XM_TRY(xm_jinja_read_indentation(r, a->values[1], 0, &style.indent));
    XM_TRY(read_separators(r, a->values[2], &style));
    enum xm_status status = xm_jinja_print_json(r, &style, self, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}

/* The filter format: applies "%" to the positional arguments or, if there are none, to a mapping of
 * the named ones. */
static enum xm_status
filter_format(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_slice s;
    struct xm_jinja_dict *dict = NULL;
    struct xm_jinja_list list = {.n = a->n_positional, .items = a->values};
    value v = {.kind = XM_JINJA_TUPLE, .list = &list};
    XM_TRY(xm_jinja_to_text(r, self, &s));
    if (a->n > a->n_positional) {
        if (a->n_positional > 0)
            return xm_jinja_fail(
                r, "format takes either positional or named values, not both");
        XM_TRY(xm_jinja_new_dict(r, &dict));
        for (size_t i = 0; i < a->n; i++)
            XM_TRY(xm_jinja_dict_put(r, dict, xm_jinja_text(a->names[i]), a->values[i]));
        v = (value){.kind = XM_JINJA_DICT, .dict = dict};
    }
    return xm_jinja_format_percent(r, s, v, out);
}

/* clang-format off */
static const struct xm_jinja_builtin filters[] = {
    {"abs", filter_abs, {NULL}, 0, false, false},
    {"capitalize", filter_capitalize, {NULL}, 0, false, false},
    {"d", filter_default, {"default_value", "boolean"}, 0, false, false},
    {"default", filter_default, {"default_value", "boolean"}, 0, false, false},
    {"float", filter_float, {"default"}, 0, false, false},
    {"format", filter_format, {NULL}, 0, true, false},
    {"int", filter_int, {"default", "base"}, 0, false, false},
    {"lower", filter_lower, {NULL}, 0, false, false},
    {"replace", filter_replace, {"old", "new", "count"}, 2, false, false},
    {"round", filter_round, {"precision", "method"}, 0, false, false},
    {"safe", filter_safe, {NULL}, 0, false, false},
    {"string", filter_string, {NULL}, 0, false, false},
    {"title", filter_title, {NULL}, 0, false, false},
    {"tojson", filter_tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, false, false},
    {"trim", filter_trim, {"chars"}, 0, false, false},
    {"upper", filter_upper, {NULL}, 0, false, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_filter(struct xm_slice name)
{
    const struct xm_jinja_builtin *row =
        xm_jinja_find(filters, XM_ARRAY_LEN(filters), name);
    row = row ? row : xm_jinja_find_text_filter(name);
    row = row ? row : xm_jinja_find_sequence_filter(name);
    row = row ? row : xm_jinja_find_select_filter(name);
    return row ? row : xm_jinja_find_group_filter(name);
}
