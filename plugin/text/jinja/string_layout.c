/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that pad them, and that replace single characters.
 */
#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

enum { MAX_WIDTH = 100000 }; /* in characters */

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

static enum xm_status
read_width(struct xm_jinja_run *r, value v, int64_t *out)
{
    XM_TRY(xm_jinja_read_size(r, v, out));
    if (*out > MAX_WIDTH)
        return xm_jinja_fail(r, "the width is %lld characters, at most %d are supported",
                             (long long)*out, MAX_WIDTH);
    return XM_OK;
}

static void
fill(const struct xm_jinja_run *r, struct xm_jinja_buffer *b, struct xm_slice with,
     int64_t n)
{
    for (; n > 0; n--)
        xm_jinja_add(r, b, with);
}

/* Pads a string to a width. `share`: half units of the padding that go to the left (0: none, 1:
 * half, 2: all). */
static enum xm_status
justify(struct xm_jinja_run *r, value self, args *a, int share, value *out)
{
    struct xm_jinja_buffer b = {0};
    struct xm_slice with = {" ", 1};
    int64_t width = 0;
    XM_TRY(read_width(r, a->values[0], &width));
    if (a->values[1].kind != XM_JINJA_ABSENT) {
        if (a->values[1].kind != XM_JINJA_STRING ||
            xm_jinja_count(a->values[1].text) != 1)
            return xm_jinja_fail(r, "the fill character must be one character");
        with = a->values[1].text;
    }
    const int64_t n = (int64_t)xm_jinja_count(self.text);
    const int64_t room = width > n ? width - n : 0;
    const int64_t left = share == 1 ? room / 2 + (room & width & 1) : share ? room : 0;
    XM_TRY(xm_jinja_charge(r, (uint64_t)room / 16));
    fill(r, &b, with, left);
    xm_jinja_add(r, &b, self.text);
    fill(r, &b, with, room - left);
    return xm_jinja_take_text(r, &b, out);
}

enum xm_status
xm_jinja_string_center(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return justify(r, self, a, 1, out);
}

enum xm_status
xm_jinja_string_ljust(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return justify(r, self, a, 0, out);
}

enum xm_status
xm_jinja_string_rjust(struct xm_jinja_run *r, value self, args *a, value *out)
{
    return justify(r, self, a, 2, out);
}

/* zfill(): pads with zeros behind the sign. */
enum xm_status
xm_jinja_string_zfill(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    int64_t width = 0;
    XM_TRY(read_width(r, a->values[0], &width));
    const struct xm_slice s = self.text;
    const size_t sign = s.n > 0 && (s.text[0] == '+' || s.text[0] == '-');
    xm_jinja_add(r, &b, xm_slice_of(s.text, sign));
    fill(r, &b, xm_slice_of("0", 1), width - (int64_t)xm_jinja_count(s));
    xm_jinja_add(r, &b, xm_slice_of(s.text + sign, s.n - sign));
    return xm_jinja_take_text(r, &b, out);
}

enum xm_status
xm_jinja_string_expandtabs(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    int64_t size = 8, column = 0;
    XM_TRY(xm_jinja_read_size(r, a->values[0], &size));
    if (size > 1024)
        return xm_jinja_fail(r,
                             "the tab size is %lld columns, at most 1024 are supported",
                             (long long)size);
    for (struct xm_slice s = self.text; s.n > 0 && b.text.n <= r->limits->output_bytes;) {
        const size_t n = xm_jinja_offset(s, 1);
        if (s.text[0] == '\t') {
            const int64_t room = size > 0 ? size - column % size : 0;
            fill(r, &b, xm_slice_of(" ", 1), room);
            column += room;
        } else {
            xm_jinja_add(r, &b, xm_slice_of(s.text, n));
            column = s.text[0] == '\n' || s.text[0] == '\r' ? 0 : column + 1;
        }
        s = xm_slice_of(s.text + n, s.n - n);
    }
    return xm_jinja_take_text(r, &b, out);
}

/* ---- translation: a mapping from code points to code points, texts or none ---- */

static enum xm_status
first_code(struct xm_jinja_run *r, value v, value *out)
{
    int32_t code;
    if (v.kind == XM_JINJA_INT) {
        *out = v;
        return XM_OK;
    }
    if (v.kind != XM_JINJA_STRING || xm_jinja_count(v.text) != 1)
        return xm_jinja_fail(r, "maketrans needs characters as keys");
    xm_utf8_next(v.text, &code);
    *out = xm_jinja_int(code);
    return XM_OK;
}

static enum xm_status
put_characters(struct xm_jinja_run *r, struct xm_jinja_dict *table, value from, value to)
{
    const struct xm_jinja_list *keys = NULL, *values = NULL;
    if (from.kind != XM_JINJA_STRING ||
        (to.kind != XM_JINJA_STRING && to.kind != XM_JINJA_NONE))
        return xm_jinja_fail_not_text(r, from.kind != XM_JINJA_STRING ? from : to);
    XM_TRY(xm_jinja_iterate(r, from, &keys));
    if (to.kind == XM_JINJA_STRING)
        XM_TRY(xm_jinja_iterate(r, to, &values));
    if (values && keys->n != values->n)
        return xm_jinja_fail(r, "maketrans needs two strings of the same length");
    for (size_t i = 0; i < keys->n; i++) {
        value key, code = xm_jinja_none();
        XM_TRY(first_code(r, keys->items[i], &key));
        if (values)
            XM_TRY(first_code(r, values->items[i], &code));
        XM_TRY(xm_jinja_dict_put(r, table, key, code));
    }
    return XM_OK;
}

enum xm_status
xm_jinja_string_maketrans(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)self;
    struct xm_jinja_dict *table = NULL;
    const value from = a->values[0];
    XM_TRY(xm_jinja_new_dict(r, &table));
    if (a->values[1].kind != XM_JINJA_ABSENT) {
        XM_TRY(put_characters(r, table, from, a->values[1]));
        if (a->values[2].kind != XM_JINJA_ABSENT)
            XM_TRY(put_characters(r, table, a->values[2], xm_jinja_none()));
    } else if (from.kind != XM_JINJA_DICT) {
        return xm_jinja_fail(r, "maketrans with one argument needs a mapping");
    } else {
        for (size_t i = 0; i < from.dict->n; i++) {
            value key;
            XM_TRY(first_code(r, from.dict->keys[i], &key));
            XM_TRY(xm_jinja_dict_put(r, table, key, from.dict->values[i]));
        }
    }
    *out = (value){.kind = XM_JINJA_DICT, .dict = table};
    return XM_OK;
}

static enum xm_status
translate_one(struct xm_jinja_run *r, const struct xm_jinja_dict *table,
              struct xm_slice character, struct xm_jinja_buffer *b)
{
    int32_t code;
    const value *to = NULL;
    xm_utf8_next(character, &code);
    XM_TRY(xm_jinja_dict_find(r, table, xm_jinja_int(code), &to));
    if (!to)
        xm_jinja_add(r, b, character);
    else if (to->kind == XM_JINJA_STRING)
        xm_jinja_add(r, b, to->text);
    else if (to->kind == XM_JINJA_INT && to->integer >= 0 && to->integer <= 0x10ffff)
        xm_utf8_add(&b->text, (int32_t)to->integer);
    else if (to->kind != XM_JINJA_NONE)
        return xm_jinja_fail(
            r, "translate: a replacement is %s, expected a string, a code point or none",
            xm_jinja_kind_name(to->kind));
    return xm_jinja_check_size(r, b);
}

enum xm_status
xm_jinja_string_translate(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    enum xm_status s = XM_OK;
    if (a->values[0].kind != XM_JINJA_DICT)
        return xm_jinja_fail(r, "translate needs a mapping");
    for (struct xm_slice rest = self.text; rest.n > 0 && s == XM_OK;) {
        const size_t n = xm_jinja_offset(rest, 1);
        s = translate_one(r, a->values[0].dict, xm_slice_of(rest.text, n), &b);
        rest = xm_slice_of(rest.text + n, rest.n - n);
    }
    if (s == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return s;
}
