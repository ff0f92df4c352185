/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter wordwrap: breaks each line of a text into lines of at most `width` characters, as
 * Python's textwrap does.
 *
 *     line -> chunks, which are not broken -> lines with as many chunks as fit
 *
 * A chunk is a run of white space, or a run of other characters between two places where a line may
 * break: white space, behind a hyphen inside a word ("well-|known"), around a dash ("no|--|yes").
 */
#include "plugin/text/jinja/filters.h"
#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;

struct wrapping {
    size_t width; /* > 0, in characters */
    bool break_words, break_hyphens;
    struct xm_slice between; /* text put between two lines */
};

/* One line of the text. Character i is codes[i] and has the bytes [starts[i], starts[i + 1]). */
struct line {
    struct xm_slice text;
    size_t n; /* number of characters */
    int32_t *codes;
    size_t *starts;
    bool *begins_chunk; /* [n] whether a chunk begins at the character */
};

static enum xm_status
read_line(struct xm_jinja_run *r, struct xm_slice text, struct line *out)
{
    *out = (struct line){.text = text, .n = xm_jinja_count(text)};
    XM_TRY(xm_jinja_charge_text(r, text.n));
    XM_TRY(xm_jinja_alloc(r, out->n, sizeof(*out->codes), &out->codes));
    XM_TRY(xm_jinja_alloc(r, out->n + 1, sizeof(*out->starts), &out->starts));
    XM_TRY(xm_jinja_alloc(r, out->n, sizeof(*out->begins_chunk), &out->begins_chunk));
    for (size_t i = 0, at = 0; i < out->n; i++) {
        out->starts[i] = at;
        at += xm_utf8_next(xm_slice_of(text.text + at, text.n - at), &out->codes[i]);
        out->starts[i + 1] = at;
    }
    return XM_OK;
}

/* ---- chunks -------------------------------------------------------------------------- */

static bool
is_break_space(int32_t code)
{
    return code == ' ' || (code >= '\t' && code <= '\r');
}

/* Returns whether the character is a letter, a digit or '_' (Python's \w). */
static bool
is_word(int32_t code)
{
    return code == '_' || xm_jinja_is_alphanumeric(code);
}

/* Returns whether character i is a word character (\w) but not a decimal digit. */
static bool
is_letter(const struct line *l, size_t i)
{
    return i < l->n && is_word(l->codes[i]) && !xm_jinja_is_decimal(l->codes[i]);
}

static bool
is_hyphen(const struct line *l, size_t i)
{
    return i < l->n && l->codes[i] == '-';
}

/* Returns whether `at` is behind the hyphen of a compound word: before the hyphen are two letters
 * or a letter between hyphens, and behind it as well. */
static bool
ends_hyphenated(const struct line *l, size_t at)
{
    const bool before = at >= 3 && is_hyphen(l, at - 1) && is_letter(l, at - 2) &&
                        (is_letter(l, at - 3) ||
                         (at >= 4 && is_hyphen(l, at - 3) && is_letter(l, at - 4)));
    return before && is_letter(l, at) &&
           (is_letter(l, at + 1) || (is_hyphen(l, at + 1) && is_letter(l, at + 2)));
}

/* Returns whether a dash begins at `at`: two or more hyphens between a word or its punctuation and
 * a word. *end is the position behind it. */
static bool
begins_dash(const struct line *l, size_t at, size_t *end)
{
    const int32_t before = at > 0 ? l->codes[at - 1] : ' ';
    const bool sign = before > 0 && before < 128 && strchr("!\"'&.,?", before);
    if (!is_word(before) && !sign)
        return false;
    *end = at;
    while (is_hyphen(l, *end))
        ++*end;
    return *end >= at + 2 && *end < l->n && is_word(l->codes[*end]);
}

static void
find_chunks(const struct line *l, bool hyphens)
{
    for (size_t i = 1; i < l->n; i++) {
        size_t end;
        if (is_break_space(l->codes[i - 1]) != is_break_space(l->codes[i]) ||
            (hyphens && ends_hyphenated(l, i)))
            l->begins_chunk[i] = true;
        if (hyphens && begins_dash(l, i, &end))
            l->begins_chunk[i] = l->begins_chunk[end] = true;
    }
}

/* Returns the end of the chunk, or of its remaining part, that begins at `from` < l->n. */
static size_t
chunk_end(const struct line *l, size_t from)
{
    size_t at = from + 1;
    while (at < l->n && !l->begins_chunk[at])
        at++;
    return at;
}

/* ---- lines --------------------------------------------------------------------------- */

static bool
is_blank(const struct line *l, size_t from, size_t to)
{
    while (from < to && xm_jinja_is_space(l->codes[from]))
        from++;
    return from == to;
}

/* Returns the number of characters, at most `room`, to take from a chunk that is longer than a
 * line: up to the last hyphen if other characters stand before that. */
static size_t
cut_chunk(const struct wrapping *w, const struct line *l, size_t from, size_t room)
{
    if (!w->break_hyphens)
        return room;
    for (size_t last = from + room; last-- > from + 1;) {
        if (!is_hyphen(l, last))
            continue;
        for (size_t i = from; i < last; i++)
            if (!is_hyphen(l, i))
                return last + 1 - from;
        break;
    }
    return room;
}

/* Returns the end of the output line that begins at `from`, without trailing white space. *next:
 * where the next line begins. */
static size_t
line_end(const struct wrapping *w, const struct line *l, size_t from, size_t *next)
{
    size_t at = from, last = from, end = from;
    while (at < l->n && (end = chunk_end(l, at)) - from <= w->width) {
        last = at;
        at = end;
    }
    if (at < l->n && end - at > w->width) {
        if (w->break_words) {
            last = at;
            at += cut_chunk(w, l, at, w->width - (at - from));
        } else if (at == from) {
            last = at;
            at = end;
        }
    }
    *next = at;
    return is_blank(l, last, at) ? last : at;
}

static enum xm_status
wrap_line(struct xm_jinja_run *r, const struct wrapping *w, struct xm_slice text,
          struct xm_jinja_buffer *b)
{
    struct line l;
    bool has_lines = false;
    XM_TRY(read_line(r, text, &l));
    find_chunks(&l, w->break_hyphens);
    for (size_t at = 0; at < l.n;) {
        const size_t first = chunk_end(&l, at);
        if (has_lines && is_blank(&l, at, first)) {
            at = first;
            if (at == l.n)
                break;
        }
        size_t next;
        const size_t end = line_end(w, &l, at, &next);
        XM_TRY(xm_jinja_charge(r, 1));
        if (end > at) {
            if (has_lines)
                xm_jinja_add(r, b, w->between);
            xm_jinja_add(
                r, b,
                xm_slice_of(text.text + l.starts[at], l.starts[end] - l.starts[at]));
            XM_TRY(xm_jinja_check_size(r, b));
            has_lines = true;
        }
        at = next;
    }
    return xm_jinja_check_size(r, b);
}

static enum xm_status
wrap_lines(struct xm_jinja_run *r, const struct wrapping *w, struct xm_slice text,
           struct xm_jinja_buffer *b)
{
    for (size_t from = 0; from < text.n;) {
        const bool is_first = from == 0;
        const struct xm_slice line = xm_jinja_next_line(text, &from);
        if (!is_first)
            xm_jinja_add(r, b, w->between);
        XM_TRY(wrap_line(r, w, line, b));
    }
    return XM_OK;
}

enum xm_status
xm_jinja_filter_wordwrap(struct xm_jinja_run *r, value self, args *a, value *out)
{
    struct xm_jinja_buffer b = {0};
    int64_t width = 79;
    struct wrapping w = {
        .break_words =
            a->values[1].kind == XM_JINJA_ABSENT || xm_jinja_truth(a->values[1]),
        .break_hyphens =
            a->values[3].kind == XM_JINJA_ABSENT || xm_jinja_truth(a->values[3]),
        .between = {"\n", 1},
    };
    if (self.kind != XM_JINJA_STRING)
        return xm_jinja_fail_not_text(r, self);
    XM_TRY(xm_jinja_read_size(r, a->values[0], &width));
    if (xm_jinja_is_given(a->values[2])) {
        if (a->values[2].kind != XM_JINJA_STRING)
            return xm_jinja_fail_not_text(r, a->values[2]);
        w.between = a->values[2].text;
    }
    if (width <= 0 && self.text.n > 0)
        return xm_jinja_fail(
            r, "wordwrap: the width is %lld characters, expected at least 1",
            (long long)width);
    w.width = (size_t)width;
    const enum xm_status status = wrap_lines(r, &w, self.text, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}
