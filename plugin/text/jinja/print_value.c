/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes values as text, as Python's str() and repr() do.
 */
#include <math.h>
#include <utf8proc.h>

#include "plugin/text/jinja/run_state.h"
#include "runtime/util/utf8.h"

/* Writes a float in Python's layout, with an exponent from 1e16 on and below 1e-4. `json` is the
 * JSON writer's text: the shortest digits that read back as the same number. */
static void
layout_float(const char *json, struct xm_strbuf *b)
{
    char digits[32];
    size_t n = 0, first = 0;
    int point = 0, exponent = 0;
    bool seen_point = false;
    if (*json == '-') {
        xm_strbuf_add(b, "-");
        json++;
    }
    for (; *json && *json != 'e' && *json != 'E'; json++) {
        if (*json == '.')
            seen_point = true;
        else if (n < sizeof(digits))
            digits[n++] = *json;
        point += !seen_point;
    }
    if (*json) {
        bool negative = json[1] == '-';
        for (json += 1 + (negative || json[1] == '+'); *json; json++)
            exponent = exponent * 10 + (*json - '0');
        exponent = negative ? -exponent : exponent;
    }
    while (first + 1 < n && digits[first] == '0')
        first++, point--;
    while (n > first + 1 && digits[n - 1] == '0')
        n--;
    int size = (int)(n - first), place = digits[first] == '0' ? 1 : point + exponent;
    const char *d = digits + first;
    if (place > 16 || place < -3) {
        xm_strbuf_printf(b, "%.1s%s%.*se%c%02d", d, size > 1 ? "." : "", size - 1, d + 1,
                         place > 0 ? '+' : '-', place > 0 ? place - 1 : 1 - place);
    } else if (place <= 0) {
        xm_strbuf_printf(b, "0.%.*s%.*s", -place, "000", size, d);
    } else if (size <= place) {
        xm_strbuf_printf(b, "%.*s%.*s.0", size, d, place - size, "0000000000000000");
    } else {
        xm_strbuf_printf(b, "%.*s.%.*s", place, d, size - place, d + place);
    }
}

void
xm_jinja_print_float(double real, struct xm_strbuf *b)
{
    yyjson_val value = {0};
    char memory[256];
    yyjson_alc alc;
    size_t n;
    if (isnan(real) || isinf(real)) {
        xm_strbuf_add(b, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
        return;
    }
    yyjson_set_real(&value, real);
    yyjson_alc_pool_init(&alc, memory, sizeof(memory));
    char *json = yyjson_val_write_opts(&value, 0, &alc, &n, NULL);
    if (json)
        layout_float(json, b);
    else
        b->failed = true;
}

bool
xm_jinja_is_printable(int32_t code)
{
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return code == ' ';
    default:
        return true;
    }
}

static void
print_quoted_char(int32_t code, char quote, struct xm_strbuf *b)
{
    if (code == quote || code == '\\')
        xm_strbuf_printf(b, "\\%c", (char)code);
    else if (code == '\n' || code == '\r' || code == '\t')
        xm_strbuf_add(b, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
    else if (xm_jinja_is_printable(code))
        xm_utf8_add(b, code);
    else if (code < 0x100)
        xm_strbuf_printf(b, "\\x%02x", (unsigned)code);
    else
        xm_strbuf_printf(b, code < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code);
}

static void
print_quoted(const struct xm_jinja_run *r, struct xm_slice s, struct xm_jinja_buffer *b)
{
    const char *marks = xm_jinja_marks_of(r, s);
    bool single = s.n > 0 && memchr(s.text, '\'', s.n);
    bool use_double = single && !memchr(s.text, '"', s.n);
    char quote = use_double ? '"' : '\'';
    xm_strbuf_add_n(&b->text, &quote, 1);
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        size_t n = xm_utf8_next(xm_slice_of(s.text + at, s.n - at), &code);
        size_t from = b->text.n;
        print_quoted_char(code, quote, &b->text);
        if (marks && marks[at])
            xm_jinja_mark_from(b, from);
        at += n;
    }
    xm_strbuf_add_n(&b->text, &quote, 1);
}

static enum xm_status
print_list(struct xm_jinja_run *r, struct xm_jinja_value v, struct xm_jinja_buffer *b)
{
    bool tuple = v.kind == XM_JINJA_TUPLE;
    xm_strbuf_add(&b->text, tuple ? "(" : "[");
    for (size_t i = 0; i < v.list->n; i++) {
        xm_strbuf_add(&b->text, i > 0 ? ", " : "");
        XM_TRY(xm_jinja_print_repr(r, v.list->items[i], b));
    }
    xm_strbuf_add(&b->text, !tuple ? "]" : v.list->n == 1 ? ",)" : ")");
    return XM_OK;
}

static enum xm_status
print_dict(struct xm_jinja_run *r, struct xm_jinja_value v, struct xm_jinja_buffer *b)
{
    xm_strbuf_add(&b->text, v.kind == XM_JINJA_NAMESPACE ? "<Namespace {" : "{");
    for (size_t i = 0; i < v.dict->n; i++) {
        xm_strbuf_add(&b->text, i > 0 ? ", " : "");
        XM_TRY(xm_jinja_print_repr(r, v.dict->keys[i], b));
        xm_strbuf_add(&b->text, ": ");
        XM_TRY(xm_jinja_print_repr(r, v.dict->values[i], b));
    }
    xm_strbuf_add(&b->text, v.kind == XM_JINJA_NAMESPACE ? "}>" : "}");
    return XM_OK;
}

static void
print_range(const struct xm_jinja_range *range, struct xm_strbuf *b)
{
    xm_strbuf_printf(b, "range(%lld, %lld", (long long)range->start,
                     (long long)range->stop);
    if (range->step != 1)
        xm_strbuf_printf(b, ", %lld", (long long)range->step);
    xm_strbuf_add(b, ")");
}

static enum xm_status
fail_unprintable(struct xm_jinja_run *r, struct xm_jinja_value v)
{
    return xm_jinja_fail(r, "%s cannot be written as text", xm_jinja_kind_name(v.kind));
}

/* Appends a value; `quoted`: texts are written as repr() does. */
static enum xm_status
print_value(struct xm_jinja_run *r, struct xm_jinja_value v, bool quoted,
            struct xm_jinja_buffer *b)
{
    switch (v.kind) {
    case XM_JINJA_ABSENT:
        break;
    case XM_JINJA_UNDEFINED:
        xm_strbuf_add(&b->text, quoted ? "Undefined" : "");
        break;
    case XM_JINJA_NONE:
        xm_strbuf_add(&b->text, "None");
        break;
    case XM_JINJA_BOOL:
        xm_strbuf_add(&b->text, v.truth ? "True" : "False");
        break;
    case XM_JINJA_INT:
        xm_strbuf_printf(&b->text, "%lld", (long long)v.integer);
        break;
    case XM_JINJA_FLOAT:
        xm_jinja_print_float(v.real, &b->text);
        break;
    case XM_JINJA_STRING:
        xm_strbuf_add(&b->text, quoted && v.is_safe ? "Markup(" : "");
        if (quoted)
            print_quoted(r, v.text, b);
        else
            xm_jinja_add(r, b, v.text);
        xm_strbuf_add(&b->text, quoted && v.is_safe ? ")" : "");
        break;
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        XM_TRY(print_list(r, v, b));
        break;
    case XM_JINJA_DICT:
    case XM_JINJA_NAMESPACE:
        XM_TRY(print_dict(r, v, b));
        break;
    case XM_JINJA_VIEW:
        xm_strbuf_printf(&b->text, "%s(", v.view->name);
        XM_TRY(print_list(r, xm_jinja_list_value(v.view->items), b));
        xm_strbuf_add(&b->text, ")");
        break;
    case XM_JINJA_RANGE:
        print_range(v.range, &b->text);
        break;
    case XM_JINJA_LOOP:
        xm_strbuf_printf(&b->text, "<LoopContext %zu/%zu>", v.loop->index + 1,
                         v.loop->items->n);
        break;
    case XM_JINJA_FUNCTION:
        if (v.function->builtin)
            return fail_unprintable(r, v);
        xm_strbuf_add(&b->text, "<Macro ");
        if (v.function->macro->name.n > 0)
            print_quoted(r, v.function->macro->name, b);
        else
            xm_strbuf_add(&b->text, "anonymous");
        xm_strbuf_add(&b->text, ">");
        break;
    case XM_JINJA_ITERATOR: /* Python writes a memory address */
    case XM_JINJA_CYCLER:
        return fail_unprintable(r, v);
    }
    return xm_jinja_check_size(r, b);
}

enum xm_status
xm_jinja_print_repr(struct xm_jinja_run *r, struct xm_jinja_value v,
                    struct xm_jinja_buffer *b)
{
    XM_TRY(xm_jinja_enter(r));
    XM_TRY(print_value(r, v, true, b));
    r->depth--;
    return XM_OK;
}

enum xm_status
xm_jinja_print(struct xm_jinja_run *r, struct xm_jinja_value v, struct xm_jinja_buffer *b)
{
    return print_value(r, v, false, b);
}

enum xm_status
xm_jinja_to_text(struct xm_jinja_run *r, struct xm_jinja_value v, struct xm_slice *out)
{
    if (v.kind != XM_JINJA_STRING) {
        struct xm_jinja_buffer b = {0};
        enum xm_status status = xm_jinja_print(r, v, &b);
        if (status != XM_OK) {
            xm_jinja_buffer_free(&b);
            return status;
        }
        XM_TRY(xm_jinja_take_text(r, &b, &v));
    }
    *out = v.text;
    return XM_OK;
}
