/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that lay out text, cut it, and escape it for other languages.
 */
#include <math.h>

#include "plugin/text/jinja/filters.h"
#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

void
xm_jinja_add_escaped(const struct xm_jinja_run *r, struct xm_slice s,
                     struct xm_jinja_buffer *b)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"},
    };
    const char *marks = xm_jinja_marks_of(r, s);
    for (size_t i = 0; i < s.n; i++) {
        const char *entity = NULL;
        for (size_t k = 0; k < XM_ARRAY_LEN(entities); k++)
            if (entities[k].c == s.text[i])
                entity = entities[k].entity;
        size_t from = b->text.n;
        if (entity)
            xm_strbuf_add(&b->text, entity);
        else
            xm_strbuf_add_n(&b->text, s.text + i, 1);
        if (marks && marks[i])
            xm_jinja_mark_from(b, from);
    }
}

static enum xm_status
filter_escape(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    return xm_jinja_escape(r, self, out);
}

static enum xm_status
filter_forceescape(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    self.is_safe = false;
    return xm_jinja_escape(r, self, out);
}

static void
add_repeated(const struct xm_jinja_run *r, struct xm_jinja_buffer *b, struct xm_slice s,
             int64_t times)
{
    for (; times > 0; times--)
        xm_jinja_add(r, b, s);
}

enum xm_status
xm_jinja_read_indentation(struct xm_jinja_run *r, value width, int64_t none,
                          struct xm_slice *out)
{
    struct xm_jinja_buffer b = {0};
    value v = width;
    if (width.kind != XM_JINJA_STRING) {
        int64_t n = width.kind == XM_JINJA_INT ? width.integer : none;
        if (n > 1024)
            return xm_jinja_fail(
                r, "an indentation has %lld characters, at most 1024 are supported",
                (long long)n);
        add_repeated(r, &b, xm_slice_of(" ", 1), n);
        XM_TRY(xm_jinja_take_text(r, &b, &v));
    }
    *out = v.text;
    return XM_OK;
}

static enum xm_status
filter_indent(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    struct xm_slice s, indentation;
    size_t from = 0;
    bool first = true, blank = xm_jinja_truth(a->values[2]), open = true;
    if (self.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, self);
    s = self.text;
    XM_TRY(xm_jinja_read_indentation(r, a->values[0], 4, &indentation));
    for (; open; first = false) {
        size_t start = from;
        struct xm_slice line = xm_jinja_next_line(s, &from);
        open = from > start + line.n; /* a line end follows, so there is another line */
        bool wanted = first ? xm_jinja_truth(a->values[1]) : line.n > 0 || blank;
        xm_strbuf_add(&b.text, first ? "" : "\n");
        add_repeated(r, &b, indentation, wanted);
        xm_jinja_add(r, &b, line);
    }
    return xm_jinja_take_text(r, &b, out);
}

/* The filter wordcount: counts runs of word characters (letters, digits and '_'), as
 * re.findall(r"\w+") does. */
static enum xm_status
filter_wordcount(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_slice s;
    int64_t n = 0;
    bool inside = false;
    XM_TRY(xm_jinja_to_text(r, self, &s));
    while (s.n > 0) {
        int32_t code;
        size_t bytes = xm_utf8_next(s, &code);
        bool word = xm_utf8_is_word(code) && !xm_utf8_is_mark(code);
        n += word && !inside;
        inside = word;
        s = xm_slice_of(s.text + bytes, s.n - bytes);
    }
    *out = xm_jinja_int(n);
    return XM_OK;
}

static enum xm_status
filter_center(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    struct xm_slice s;
    int64_t width = 80;
    XM_TRY(xm_jinja_read_size(r, a->values[0], &width));
    XM_TRY(xm_jinja_to_text(r, self, &s));
    if (width > 100000)
        return xm_jinja_fail(
            r, "center: the width is %lld characters, at most 100000 are supported",
            (long long)width);
    int64_t n = (int64_t)xm_jinja_count(s), room = width > n ? width - n : 0;
    int64_t left = room / 2 + (room & width & 1);
    add_repeated(r, &b, xm_slice_of(" ", 1), left);
    xm_jinja_add(r, &b, s);
    add_repeated(r, &b, xm_slice_of(" ", 1), room - left);
    return xm_jinja_take_text(r, &b, out);
}

/* ---- cutting ---- */

/* The filter truncate: cuts a text, unless it is at most `leeway` characters too long. Without
 * `killwords` words are not cut. */
static enum xm_status
filter_truncate(struct xm_jinja_run *r, value self, args *a, value *out)
{
    int64_t length = 255, leeway = 5;
    struct xm_slice end = {"...", 3};
    size_t at = SIZE_MAX;
    XM_TRY(xm_jinja_read_size(r, a->values[0], &length));
    if (a->values[2].kind != XM_JINJA_ABSENT)
        XM_TRY(xm_jinja_to_text(r, a->values[2], &end));
    if (a->values[3].kind != XM_JINJA_NONE)
        XM_TRY(xm_jinja_read_size(r, a->values[3], &leeway));
    const int64_t n_end = (int64_t)xm_jinja_count(end);
    if (length < n_end || leeway < 0)
        return xm_jinja_fail(r,
                             "truncate: the length of %lld characters is less than the "
                             "%lld characters of the end text",
                             (long long)length, (long long)n_end);
    *out = self;
    if (self.kind == XM_JINJA_UNDEFINED)
        return XM_OK;
    if (self.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, self);
    if ((int64_t)xm_jinja_count(self.text) - leeway <= length)
        return XM_OK;
    struct xm_slice kept = {self.text.text,
                            xm_jinja_offset(self.text, (size_t)(length - n_end))};
    if (!xm_jinja_truth(a->values[1]))
        XM_TRY(xm_jinja_find_last_text(r, kept, xm_slice_of(" ", 1), 0, &at));
    kept.n = at == SIZE_MAX ? kept.n : at;
    return xm_jinja_binary(r, xm_slice_of("+", 1), xm_jinja_text(kept),
                           xm_jinja_text(end), out);
}

/* Removes everything from `open` to `close`, repeatedly, while both are found. */
static enum xm_status
cut_between(struct xm_jinja_run *r, struct xm_slice s, const char *open,
            const char *close, value *out)
{
    struct xm_jinja_buffer b = {0};
    const struct xm_slice first = {open, strlen(open)}, last = {close, strlen(close)};
    enum xm_status status = XM_OK;
    while (status == XM_OK) {
        size_t start = SIZE_MAX, end = SIZE_MAX;
        status = xm_jinja_find_text(r, s, first, 0, &start);
        if (status == XM_OK && start != SIZE_MAX)
            status = xm_jinja_find_text(r, s, last, start, &end);
        if (status != XM_OK || end == SIZE_MAX)
            break;
        xm_jinja_add(r, &b, xm_slice_of(s.text, start));
        s = xm_slice_of(s.text + end + last.n, s.n - end - last.n);
    }
    xm_jinja_add(r, &b, s);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}

/* The filter striptags: removes HTML comments and tags, reduces white space to single spaces, and
 * replaces the entities that the filter escape makes. */
static enum xm_status
filter_striptags(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    static const struct {
        const char *entity, *text;
    } entities[] = {{"&lt;", "<"},  {"&gt;", ">"},   {"&quot;", "\""}, {"&#34;", "\""},
                    {"&#39;", "'"}, {"&#x27;", "'"}, {"&amp;", "&"}};
    struct xm_slice s;
    struct xm_jinja_buffer b = {0};
    value words;
    XM_TRY(xm_jinja_to_text(r, self, &s));
    XM_TRY(cut_between(r, s, "<!--", "-->", out));
    XM_TRY(cut_between(r, out->text, "<", ">", out));
    const value none[2] = {{0}, {0}};
    const struct xm_jinja_args no_args = {2, 2, (value *)none, NULL};
    XM_TRY(xm_jinja_string_split(r, *out, &no_args, &words));
    for (size_t i = 0; i < words.list->n; i++) {
        xm_jinja_add(r, &b, xm_slice_of(" ", i > 0));
        xm_jinja_add(r, &b, words.list->items[i].text);
    }
    XM_TRY(xm_jinja_take_text(r, &b, out));
    for (size_t i = 0; i < XM_ARRAY_LEN(entities); i++)
        XM_TRY(xm_jinja_replace(
            r, out->text, xm_slice_of(entities[i].entity, strlen(entities[i].entity)),
            xm_slice_of(entities[i].text, 1), -1, out));
    return XM_OK;
}

/* ---- other languages ---- */

static enum xm_status
add_url(struct xm_jinja_run *r, value v, bool query, struct xm_jinja_buffer *b)
{
    struct xm_slice s;
    XM_TRY(xm_jinja_to_text(r, v, &s));
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.text[i];
        const bool plain = (c >= '0' && c <= '9') ||
                           ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                           (c && strchr("_.-~", c));
        if (plain || (c == '/' && !query))
            xm_strbuf_add_n(&b->text, &s.text[i], 1);
        else if (c == ' ' && query)
            xm_strbuf_add(&b->text, "+");
        else
            xm_strbuf_printf(&b->text, "%%%02X", c);
    }
    return xm_jinja_check_size(r, b);
}

static enum xm_status
add_query(struct xm_jinja_run *r, value pairs, struct xm_jinja_buffer *b)
{
    const struct xm_jinja_list *items = NULL, *pair = NULL;
    XM_TRY(xm_jinja_iterate(r, pairs, &items));
    for (size_t i = 0; i < items->n; i++) {
        XM_TRY(xm_jinja_iterate(r, items->items[i], &pair));
        if (pair->n != 2)
            return xm_jinja_fail(r, "urlencode needs a text, a mapping or pairs");
        xm_strbuf_add(&b->text, i > 0 ? "&" : "");
        XM_TRY(add_url(r, pair->items[0], true, b));
        xm_strbuf_add(&b->text, "=");
        XM_TRY(add_url(r, pair->items[1], true, b));
    }
    return XM_OK;
}

static enum xm_status
filter_urlencode(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)a;
    struct xm_jinja_buffer b = {0};
    const struct xm_jinja_args none = {0};
    const bool one = self.kind == XM_JINJA_STRING || xm_jinja_is_number(self) ||
                     self.kind == XM_JINJA_NONE;
    if (self.kind == XM_JINJA_DICT)
        XM_TRY(xm_jinja_call_builtin(
            r, xm_jinja_find_method(XM_JINJA_DICT, xm_slice_of("items", 5)), self, &none,
            &self));
    const enum xm_status s = one ? add_url(r, self, false, &b) : add_query(r, self, &b);
    if (s == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return s;
}

static enum xm_status
add_attribute(struct xm_jinja_run *r, value key, value v, bool space,
              struct xm_jinja_buffer *b)
{
    struct xm_slice text;
    if (key.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, key);
    const struct xm_slice name = key.text;
    XM_TRY(xm_jinja_to_text(r, v, &text));
    for (size_t at = 0; at < name.n;) {
        int32_t code;
        at += xm_utf8_next(xm_slice_of(name.text + at, name.n - at), &code);
        if (xm_jinja_is_space(code) || code == '/' || code == '>' || code == '=')
            return xm_jinja_fail(r, "xmlattr: the name of an attribute has a space, '/', "
                                    "'>' or '='");
    }
    xm_strbuf_add(&b->text, space ? " " : "");
    xm_jinja_add_escaped(r, name, b);
    xm_strbuf_add(&b->text, "=\"");
    xm_jinja_add_escaped(r, text, b);
    xm_strbuf_add(&b->text, "\"");
    return xm_jinja_check_size(r, b);
}

static enum xm_status
filter_xmlattr(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    const bool space =
        a->values[0].kind == XM_JINJA_ABSENT || xm_jinja_truth(a->values[0]);
    enum xm_status s = XM_OK;
    if (self.kind != XM_JINJA_DICT)
        return xm_jinja_fail(r, "xmlattr is applied to %s, expected a mapping",
                             xm_jinja_kind_name(self.kind));
    for (size_t i = 0; i < self.dict->n && s == XM_OK; i++) {
        const value v = self.dict->values[i];
        if (v.kind != XM_JINJA_NONE && v.kind != XM_JINJA_UNDEFINED)
            s = add_attribute(r, self.dict->keys[i], v, space || b.text.n > 0, &b);
    }
    if (s == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return s;
}

static enum xm_status
filter_filesizeformat(struct xm_jinja_run *r, value self, args *a, value *out)
{
    static const char letters[] = "kMGTPEZY";
    const bool binary = xm_jinja_truth(a->values[0]);
    const double base = binary ? 1024.0 : 1000.0;
    struct xm_jinja_buffer b = {0};
    double bytes = 0.0, unit = base;
    size_t power = 0;
    if (xm_jinja_is_number(self))
        bytes = xm_jinja_to_double(self);
    else if (self.kind != XM_JINJA_STRING ||
             !xm_jinja_read_float(
                 xm_jinja_strip(self.text, NULL, XM_JINJA_LEFT | XM_JINJA_RIGHT), &bytes))
        return xm_jinja_fail(r, "filesizeformat needs a number");
    for (; power + 2 < sizeof(letters) && bytes >= unit * base; power++)
        unit *= base;
    if (bytes == 1.0)
        xm_strbuf_add(&b.text, "1 Byte");
    else if (bytes < base)
        xm_strbuf_printf(&b.text, "%.0f Bytes",
                         bytes < 0 ? -floor(-bytes) : floor(bytes));
    else
        xm_strbuf_printf(&b.text, "%.1f %c%sB", bytes / unit,
                         binary && power == 0 ? 'K' : letters[power], binary ? "i" : "");
    return xm_jinja_take_text(r, &b, out);
}

/* clang-format off */
static const struct xm_jinja_builtin filters[] = {
    {"center", filter_center, {"width"}, 0, false, false},
    {"e", filter_escape, {NULL}, 0, false, false},
    {"escape", filter_escape, {NULL}, 0, false, false},
    {"filesizeformat", filter_filesizeformat, {"binary"}, 0, false, false},
    {"forceescape", filter_forceescape, {NULL}, 0, false, false},
    {"indent", filter_indent, {"width", "first", "blank"}, 0, false, false},
    {"pprint", xm_jinja_filter_pprint, {NULL}, 0, false, false},
    {"striptags", filter_striptags, {NULL}, 0, false, false},
    {"truncate", filter_truncate, {"length", "killwords", "end", "leeway"}, 0, false, false},
    {"urlencode", filter_urlencode, {NULL}, 0, false, false},
    {"urlize", xm_jinja_filter_urlize, {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, 0, false, false},
    {"wordcount", filter_wordcount, {NULL}, 0, false, false},
    {"wordwrap", xm_jinja_filter_wordwrap, {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0, false, false},
    {"xmlattr", filter_xmlattr, {"autospace"}, 0, false, false},
};
/* clang-format on */

const struct xm_jinja_builtin *
xm_jinja_find_text_filter(struct xm_slice name)
{
    return xm_jinja_find(filters, XM_ARRAY_LEN(filters), name);
}
