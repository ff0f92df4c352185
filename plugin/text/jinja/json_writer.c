/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes values as JSON, in the layout of Python's json.dumps(), for the filter tojson.
 */
#include <math.h>

#include "plugin/text/jinja/run_state.h"
#include "runtime/util/utf8.h"

struct writer {
    struct xm_jinja_run *r;
    const struct xm_jinja_json_style *style;
    struct xm_jinja_buffer *b;
    unsigned level;
};

static enum xm_status write_value(struct writer *w, struct xm_jinja_value v);

static void
write_char(struct writer *w, int32_t code)
{
    static const char plain[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i + 1 < sizeof(plain); i += 2)
        if (plain[i] == code) {
            xm_strbuf_printf(&w->b->text, "\\%c", plain[i + 1]);
            return;
        }
    if (code >= 0x10000 && w->style->ascii)
        xm_strbuf_printf(&w->b->text, "\\u%04x\\u%04x",
                         0xd800 + (((unsigned)code - 0x10000) >> 10),
                         0xdc00 + ((unsigned)code & 0x3ff));
    else if (code < 0x20 || (code > 0x7e && w->style->ascii))
        xm_strbuf_printf(&w->b->text, "\\u%04x", (unsigned)code);
    else
        xm_utf8_add(&w->b->text, code);
}

static void
write_string(struct writer *w, struct xm_slice s)
{
    const char *marks = xm_jinja_marks_of(w->r, s);
    xm_strbuf_add(&w->b->text, "\"");
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        size_t n = xm_utf8_next(xm_slice_of(s.text + at, s.n - at), &code);
        size_t from = w->b->text.n;
        write_char(w, code);
        if (marks && marks[at])
            xm_jinja_mark_from(w->b, from);
        at += n;
    }
    xm_strbuf_add(&w->b->text, "\"");
}

static void
write_break(struct writer *w)
{
    if (!w->style->multi_line)
        return;
    xm_strbuf_add(&w->b->text, "\n");
    for (unsigned i = 0; i < w->level; i++)
        xm_strbuf_add_n(&w->b->text, w->style->indent.text, w->style->indent.n);
}

/* Writes the separator and line break before item i. */
static void
write_separator(struct writer *w, size_t i)
{
    if (i > 0)
        xm_strbuf_add_n(&w->b->text, w->style->item_separator.text,
                        w->style->item_separator.n);
    write_break(w);
}

static enum xm_status
write_list(struct writer *w, const struct xm_jinja_list *list)
{
    if (list->n == 0) {
        xm_strbuf_add(&w->b->text, "[]");
        return XM_OK;
    }
    xm_strbuf_add(&w->b->text, "[");
    w->level++;
    for (size_t i = 0; i < list->n; i++) {
        write_separator(w, i);
        XM_TRY(write_value(w, list->items[i]));
    }
    w->level--;
    write_break(w);
    xm_strbuf_add(&w->b->text, "]");
    return XM_OK;
}

/* Writes a key. JSON only has strings as keys, so numbers and constants become strings. */
static enum xm_status
write_key(struct writer *w, struct xm_jinja_value key)
{
    if (key.kind == XM_JINJA_STRING) {
        write_string(w, key.text);
        return XM_OK;
    }
    if (!xm_jinja_is_number(key) && key.kind != XM_JINJA_NONE)
        return xm_jinja_fail(w->r, "%s cannot be a key of a JSON object",
                             xm_jinja_kind_name(key.kind));
    xm_strbuf_add(&w->b->text, "\"");
    XM_TRY(write_value(w, key));
    xm_strbuf_add(&w->b->text, "\"");
    return XM_OK;
}

/* Computes the order in which members are written, as indices. */
static enum xm_status
order_keys(struct writer *w, const struct xm_jinja_dict *d, size_t **out)
{
    XM_TRY(xm_jinja_alloc(w->r, d->n, sizeof(**out), out));
    for (size_t i = 0; i < d->n; i++) {
        size_t at = i;
        for (; w->style->sort_keys && at > 0; at--) {
            int order = 0;
            XM_TRY(xm_jinja_charge(w->r, 1));
            XM_TRY(xm_jinja_order(w->r, d->keys[(*out)[at - 1]], d->keys[i], &order));
            if (order <= 0)
                break;
            (*out)[at] = (*out)[at - 1];
        }
        (*out)[at] = i;
    }
    return XM_OK;
}

static enum xm_status
write_dict(struct writer *w, const struct xm_jinja_dict *d)
{
    size_t *order = NULL;
    if (d->n == 0) {
        xm_strbuf_add(&w->b->text, "{}");
        return XM_OK;
    }
    XM_TRY(order_keys(w, d, &order));
    xm_strbuf_add(&w->b->text, "{");
    w->level++;
    for (size_t i = 0; i < d->n; i++) {
        write_separator(w, i);
        XM_TRY(write_key(w, d->keys[order[i]]));
        xm_strbuf_add_n(&w->b->text, w->style->key_separator.text,
                        w->style->key_separator.n);
        XM_TRY(write_value(w, d->values[order[i]]));
    }
    w->level--;
    write_break(w);
    xm_strbuf_add(&w->b->text, "}");
    return XM_OK;
}

static void
write_float(struct writer *w, double real)
{
    if (isnan(real) || isinf(real))
        xm_strbuf_add(&w->b->text, isnan(real) ? "NaN"
                                   : real > 0  ? "Infinity"
                                               : "-Infinity");
    else
        xm_jinja_print_float(real, &w->b->text);
}

static enum xm_status
write_one(struct writer *w, struct xm_jinja_value v)
{
    switch (v.kind) {
    case XM_JINJA_NONE:
        xm_strbuf_add(&w->b->text, "null");
        break;
    case XM_JINJA_BOOL:
        xm_strbuf_add(&w->b->text, v.truth ? "true" : "false");
        break;
    case XM_JINJA_INT:
        xm_strbuf_printf(&w->b->text, "%lld", (long long)v.integer);
        break;
    case XM_JINJA_FLOAT:
        write_float(w, v.real);
        break;
    case XM_JINJA_STRING:
        write_string(w, v.text);
        break;
    case XM_JINJA_LIST:
    case XM_JINJA_TUPLE:
        return write_list(w, v.list);
    case XM_JINJA_DICT:
        return write_dict(w, v.dict);
    default:
        return xm_jinja_fail(w->r, "%s cannot be written as JSON",
                             xm_jinja_kind_name(v.kind));
    }
    return XM_OK;
}

static enum xm_status
write_value(struct writer *w, struct xm_jinja_value v)
{
    XM_TRY(xm_jinja_enter(w->r));
    XM_TRY(write_one(w, v));
    w->r->depth--;
    return xm_jinja_check_size(w->r, w->b);
}

enum xm_status
xm_jinja_print_json(struct xm_jinja_run *r, const struct xm_jinja_json_style *style,
                    struct xm_jinja_value v, struct xm_jinja_buffer *b)
{
    struct writer w = {r, style, b, 0};
    return write_value(&w, v);
}
