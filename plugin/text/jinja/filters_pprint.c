/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter pprint: writes a value as Python's pprint does, with sorted keys and, if possible, in
 * lines of at most 80 columns.
 *
 * A value whose repr() fits is written in one line. Otherwise each item of a list, tuple or mapping
 * gets its own line, and a text is cut behind white space into several string literals, which
 * Python joins.
 */
#include "plugin/text/jinja/filters.h"
#include "runtime/util/utf8.h"

enum { COLUMNS = 80 };

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

/* The position of a value: columns before it, and columns that closing brackets and commas need
 * behind it. `level` is the number of containers around it. */
struct place {
    size_t indent, allowance;
    unsigned level;
};

static enum xm_status write_value(struct xm_jinja_run *r, value v, struct place at,
                                  struct xm_jinja_buffer *b);

static enum xm_status
repr_of(struct xm_jinja_run *r, value v, struct xm_slice *out)
{
    struct xm_jinja_buffer b = {0};
    value text;
    const enum xm_status status = xm_jinja_print_repr(r, v, &b);
    if (status != XM_OK) {
        xm_jinja_buffer_free(&b);
        return status;
    }
    XM_TRY(xm_jinja_charge_text(r, b.text.n));
    XM_TRY(xm_jinja_take_text(r, &b, &text));
    *out = text.text;
    return XM_OK;
}

/* Returns whether n characters fit into a line behind `used` ones. */
static bool
fits(size_t n, size_t used)
{
    return used + n <= COLUMNS;
}

/* ---- order of keys ------------------------------------------------------------------- */

/* Returns Python's name of a kind of values: keys of kinds that have no order are sorted by it. */
static const char *
class_of(value v)
{
    switch (v.kind) {
    case XM_JINJA_NONE:
        return "NoneType";
    case XM_JINJA_BOOL:
        return "bool";
    case XM_JINJA_INT:
        return "int";
    case XM_JINJA_FLOAT:
        return "float";
    case XM_JINJA_STRING:
        return "str";
    default:
        return "tuple";
    }
}

static enum xm_status
order_of(struct xm_jinja_run *r, value a, value b, int *out)
{
    const bool numbers = xm_jinja_is_number(a) && xm_jinja_is_number(b);
    if (numbers || (a.kind == b.kind && a.kind != XM_JINJA_NONE))
        return xm_jinja_order(r, a, b, out);
    *out = strcmp(class_of(a), class_of(b));
    return XM_OK;
}

/* Sorts the keys. An insertion sort suffices, because mappings in templates are small and often
 * sorted. */
static enum xm_status
sort_keys(struct xm_jinja_run *r, struct xm_jinja_dict *d)
{
    for (size_t i = 1; i < d->n; i++) {
        const value key = d->keys[i], v = d->values[i];
        size_t at = i;
        for (; at > 0; at--) {
            int order = 0;
            XM_TRY(xm_jinja_charge(r, 1));
            XM_TRY(order_of(r, key, d->keys[at - 1], &order));
            if (order >= 0)
                break;
            d->keys[at] = d->keys[at - 1];
            d->values[at] = d->values[at - 1];
        }
        d->keys[at] = key;
        d->values[at] = v;
    }
    return XM_OK;
}

static enum xm_status sorted_copy(struct xm_jinja_run *r, value *v);

static enum xm_status
sorted_items(struct xm_jinja_run *r, const value *from, size_t n, value **out)
{
    XM_TRY(xm_jinja_alloc(r, n, sizeof(**out), out));
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = from[i];
        XM_TRY(sorted_copy(r, &(*out)[i]));
    }
    return XM_OK;
}

/* Replaces mappings in *v by copies with sorted keys. */
static enum xm_status
sorted_copy(struct xm_jinja_run *r, value *v)
{
    XM_TRY(xm_jinja_enter(r));
    XM_TRY(xm_jinja_charge(r, 1));
    if (xm_jinja_is_list(*v) && !v->list->is_group) {
        struct xm_jinja_list *list = NULL;
        XM_TRY(xm_jinja_alloc(r, 1, sizeof(*list), &list));
        list->n = v->list->n;
        XM_TRY(sorted_items(r, v->list->items, list->n, &list->items));
        v->list = list;
    } else if (v->kind == XM_JINJA_DICT) {
        struct xm_jinja_dict *dict = NULL;
        XM_TRY(xm_jinja_alloc(r, 1, sizeof(*dict), &dict));
        dict->n = dict->capacity = v->dict->n;
        XM_TRY(xm_jinja_alloc(r, dict->n, sizeof(value), &dict->keys));
        if (dict->n > 0)
            memcpy(dict->keys, v->dict->keys, dict->n * sizeof(value));
        XM_TRY(sorted_items(r, v->dict->values, dict->n, &dict->values));
        XM_TRY(sort_keys(r, dict));
        v->dict = dict;
    }
    r->depth--;
    return XM_OK;
}

/* ---- layout -------------------------------------------------------------------------- */

static void
begin_line(struct xm_jinja_buffer *b, size_t indent)
{
    xm_strbuf_add(&b->text, "\n");
    while (indent-- > 0)
        xm_strbuf_add(&b->text, " ");
}

static enum xm_status
write_list(struct xm_jinja_run *r, value v, struct place at, struct xm_jinja_buffer *b)
{
    const bool tuple = v.kind == XM_JINJA_TUPLE;
    const char *end = !tuple ? "]" : v.list->n == 1 ? ",)" : ")";
    const struct place inner = {at.indent + 1, 1, at.level + 1};
    const struct place last = {at.indent + 1, at.allowance + strlen(end), at.level + 1};
    xm_strbuf_add(&b->text, tuple ? "(" : "[");
    for (size_t i = 0; i < v.list->n; i++) {
        const bool is_last = i + 1 == v.list->n;
        XM_TRY(write_value(r, v.list->items[i], is_last ? last : inner, b));
        if (!is_last) {
            xm_strbuf_add(&b->text, ",");
            begin_line(b, at.indent + 1);
        }
    }
    xm_strbuf_add(&b->text, end);
    return XM_OK;
}

static enum xm_status
write_dict(struct xm_jinja_run *r, value v, struct place at, struct xm_jinja_buffer *b)
{
    xm_strbuf_add(&b->text, "{");
    for (size_t i = 0; i < v.dict->n; i++) {
        const bool is_last = i + 1 == v.dict->n;
        struct xm_slice key;
        XM_TRY(repr_of(r, v.dict->keys[i], &key));
        xm_jinja_add(r, b, key);
        xm_strbuf_add(&b->text, ": ");
        const struct place inner = {at.indent + 1 + xm_jinja_count(key) + 2,
                                    is_last ? at.allowance + 1 : 1, at.level + 1};
        XM_TRY(write_value(r, v.dict->values[i], inner, b));
        if (!is_last) {
            xm_strbuf_add(&b->text, ",");
            begin_line(b, at.indent + 1);
        }
    }
    xm_strbuf_add(&b->text, "}");
    return XM_OK;
}

/* State for writing a text in parts, one line each. */
struct parts {
    struct xm_jinja_run *r;
    struct place at;
    struct xm_jinja_buffer *b;
    size_t n;
};

static enum xm_status
add_part(struct parts *p, struct xm_slice part)
{
    struct xm_slice repr;
    XM_TRY(repr_of(p->r, xm_jinja_text(part), &repr));
    if (p->n++ > 0)
        begin_line(p->b, p->at.indent);
    xm_jinja_add(p->r, p->b, repr);
    return xm_jinja_check_size(p->r, p->b);
}

/* Returns the end of the word that begins at `from`, including the white space behind it. */
static size_t
word_end(struct xm_slice s, size_t from)
{
    bool in_space = false;
    for (size_t at = from, n; at < s.n; at += n) {
        int32_t code;
        n = xm_utf8_next(xm_slice_of(s.text + at, s.n - at), &code);
        const bool space = xm_jinja_is_space(code);
        if (in_space && !space)
            return at;
        in_space = space;
    }
    return s.n;
}

/* Adds a line of the text, as parts that have as many words as fit. */
static enum xm_status
add_words(struct parts *p, struct xm_slice line, bool is_last_line)
{
    size_t from = 0, at = 0;
    while (at < line.n) {
        const size_t end = word_end(line, at);
        const size_t reserved = is_last_line && end == line.n ? p->at.allowance : 0;
        struct xm_slice repr;
        XM_TRY(repr_of(p->r, xm_jinja_text(xm_slice_of(line.text + from, end - from)),
                       &repr));
        if (!fits(xm_jinja_count(repr), p->at.indent + reserved) && at > from) {
            XM_TRY(add_part(p, xm_slice_of(line.text + from, at - from)));
            from = at;
        }
        at = end;
    }
    return add_part(p, xm_slice_of(line.text + from, line.n - from));
}

static enum xm_status
add_lines(struct parts *p, struct xm_slice text)
{
    for (size_t from = 0; from < text.n;) {
        const size_t start = from;
        struct xm_slice repr;
        xm_jinja_next_line(text, &from);
        const struct xm_slice line = {text.text + start, from - start};
        const bool is_last = from == text.n;
        XM_TRY(repr_of(p->r, xm_jinja_text(line), &repr));
        XM_TRY(fits(xm_jinja_count(repr), p->at.indent + (is_last ? p->at.allowance : 0))
                   ? add_part(p, line)
                   : add_words(p, line, is_last));
    }
    return XM_OK;
}

/* Writes a text. Several parts of a text outside of containers are put in parentheses. */
static enum xm_status
write_text(struct xm_jinja_run *r, value v, struct place at, struct xm_jinja_buffer *b)
{
    struct xm_jinja_buffer text = {0};
    const bool alone = at.level == 0;
    struct parts p = {.r = r, .at = at, .b = &text};
    value written;
    p.at.indent += alone;
    p.at.allowance += alone;
    const enum xm_status status = add_lines(&p, v.text);
    if (status != XM_OK) {
        xm_jinja_buffer_free(&text);
        return status;
    }
    XM_TRY(xm_jinja_take_text(r, &text, &written));
    xm_strbuf_add(&b->text, alone && p.n > 1 ? "(" : "");
    xm_jinja_add(r, b, written.text);
    xm_strbuf_add(&b->text, alone && p.n > 1 ? ")" : "");
    return XM_OK;
}

static enum xm_status
write_value(struct xm_jinja_run *r, value v, struct place at, struct xm_jinja_buffer *b)
{
    struct xm_slice repr;
    XM_TRY(repr_of(r, v, &repr));
    const bool is_long = !fits(xm_jinja_count(repr), at.indent + at.allowance);
    XM_TRY(xm_jinja_enter(r));
    if (is_long && xm_jinja_is_list(v) && !v.list->is_group)
        XM_TRY(write_list(r, v, at, b));
    else if (is_long && v.kind == XM_JINJA_DICT)
        XM_TRY(write_dict(r, v, at, b));
    else if (is_long && v.kind == XM_JINJA_STRING && v.text.n > 0 && !v.is_safe)
        XM_TRY(write_text(r, v, at, b));
    else
        xm_jinja_add(r, b, repr);
    r->depth--;
    return xm_jinja_check_size(r, b);
}

enum xm_status
xm_jinja_filter_pprint(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_buffer b = {0};
    XM_TRY(sorted_copy(r, &self));
    const enum xm_status status = write_value(r, self, (struct place){0, 0, 0}, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}
