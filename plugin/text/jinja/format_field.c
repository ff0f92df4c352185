/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats one value, for both notations.
 *
 *     number     sign and digits, grouped, padded to the width       "+1,234  "
 *     any other  str(value), cut to the precision, padded            "text    "
 */
#include "plugin/text/jinja/format_field.h"

#include <math.h>

typedef struct xm_jinja_value value;

enum xm_status
xm_jinja_fail_format_type(struct xm_jinja_run *r, char type, value v)
{
    return xm_jinja_fail(r, "the format code '%c' cannot be used for %s",
                         type ? type : 's', xm_jinja_kind_name(v.kind));
}

/* Writes the digits of an integer, without a sign. */
static void
write_integer(value v, char type, bool alternate, struct xm_strbuf *b)
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
}

static void
write_real(double real, const struct xm_jinja_field *f, struct xm_strbuf *b)
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

/* Writes `digits` with a separator between groups of three digits of the integer part. */
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

/* Writes sign and text, padded to the width in characters. */
static void
pad(const struct xm_jinja_run *r, const struct xm_jinja_field *f, struct xm_slice sign,
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
write_number(struct xm_jinja_run *r, const struct xm_jinja_field *f, value v,
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
        write_integer(v, f->type, f->alternate, &digits);
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

enum xm_status
xm_jinja_write_field(struct xm_jinja_run *r, const struct xm_jinja_field *f, value v,
                     struct xm_jinja_buffer *b)
{
    struct xm_slice text;
    XM_TRY(xm_jinja_charge(r, 1 + (uint64_t)f->width / 16));
    if (f->type != 's' && xm_jinja_is_number(v) && (v.kind != XM_JINJA_BOOL || f->type))
        return write_number(r, f, v, b);
    if (f->type && f->type != 's')
        return xm_jinja_fail_format_type(r, f->type, v);
    XM_TRY(xm_jinja_to_text(r, v, &text));
    if (f->precision >= 0)
        text.n = xm_jinja_offset(text, (size_t)f->precision);
    pad(r, f, xm_slice_of("", 0), text, f->align ? f->align : '<', b);
    return xm_jinja_check_size(r, b);
}

/* ---- what both notations need to parse a field ---- */

bool
xm_jinja_read_count(struct xm_slice s, size_t *at, int64_t *out)
{
    bool any = false;
    *out = 0;
    for (; *at < s.n && s.text[*at] >= '0' && s.text[*at] <= '9'; ++*at, any = true)
        *out = *out > XM_JINJA_MAX_WIDTH ? *out : *out * 10 + (s.text[*at] - '0');
    return any;
}

enum xm_status
xm_jinja_check_field(struct xm_jinja_run *r, const struct xm_jinja_field *f)
{
    if (f->width > XM_JINJA_MAX_WIDTH || f->precision > XM_JINJA_MAX_PRECISION)
        return xm_jinja_fail(
            r, "a format can have a width of at most %d and a precision of at most %d",
            XM_JINJA_MAX_WIDTH, XM_JINJA_MAX_PRECISION);
    return XM_OK;
}

enum xm_status
xm_jinja_repr_text(struct xm_jinja_run *r, value v, value *out)
{
    struct xm_jinja_buffer b = {0};
    const enum xm_status status = xm_jinja_print_repr(r, v, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}
