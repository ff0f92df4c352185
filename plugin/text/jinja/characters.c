/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that work on the characters of a text: counting, stripping, case, search.
 */
#include <utf8proc.h>

#include "plugin/text/jinja/run_state.h"
#include "runtime/util/utf8.h"

bool
xm_jinja_is_space(int32_t code)
{
    return (code >= 0x1c && code <= 0x1f) || xm_utf8_is_space(code);
}

static bool
is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t
xm_jinja_count(struct xm_slice s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += !is_continuation(s.text[i]);
    return n;
}

size_t
xm_jinja_offset(struct xm_slice s, size_t character)
{
    size_t i = 0;
    for (; i < s.n && character > 0; character--)
        for (i++; i < s.n && is_continuation(s.text[i]);)
            i++;
    return i;
}

static bool
is_stripped(struct xm_slice c, const struct xm_slice *chars)
{
    int32_t code;
    if (!chars) {
        xm_utf8_next(c, &code);
        return xm_jinja_is_space(code);
    }
    for (size_t i = 0; i + c.n <= chars->n; i++)
        if (memcmp(chars->text + i, c.text, c.n) == 0)
            return true;
    return false;
}

struct xm_slice
xm_jinja_strip(struct xm_slice s, const struct xm_slice *chars, int sides)
{
    while ((sides & XM_JINJA_LEFT) && s.n > 0) {
        struct xm_slice first = {s.text, xm_jinja_offset(s, 1)};
        if (!is_stripped(first, chars))
            break;
        s = xm_slice_of(s.text + first.n, s.n - first.n);
    }
    while ((sides & XM_JINJA_RIGHT) && s.n > 0) {
        size_t start = s.n - 1;
        while (start > 0 && is_continuation(s.text[start]))
            start--;
        if (!is_stripped(xm_slice_of(s.text + start, s.n - start), chars))
            break;
        s.n = start;
    }
    return s;
}

enum xm_status
xm_jinja_strip_text(struct xm_jinja_run *r, struct xm_slice s,
                    const struct xm_slice *chars, int sides, struct xm_jinja_value *out)
{
    uint64_t work = 0;
    if (chars && !xm_mul_size(s.n, chars->n, &work))
        work = UINT64_MAX;
    XM_TRY(xm_jinja_charge_text(r, work));
    *out = xm_jinja_text(xm_jinja_strip(s, chars, sides));
    return XM_OK;
}

static bool
is_letter(int32_t code)
{
    utf8proc_category_t c = utf8proc_category(code);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL ||
           c == UTF8PROC_CATEGORY_LT;
}

static bool
is_lower(int32_t code)
{
    return utf8proc_category(code) == UTF8PROC_CATEGORY_LL;
}

/* Appends the case-folded form of a character, which has a few characters at most. */
static void
add_folded(int32_t code, struct xm_strbuf *b)
{
    utf8proc_int32_t folded[8];
    int class = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(
        code, folded, (utf8proc_ssize_t)XM_ARRAY_LEN(folded), UTF8PROC_CASEFOLD, &class);
    for (utf8proc_ssize_t i = 0; i < n && i < (utf8proc_ssize_t)XM_ARRAY_LEN(folded); i++)
        xm_utf8_add(b, folded[i]);
}

void
xm_jinja_change_case(const struct xm_jinja_run *r, struct xm_slice s,
                     enum xm_jinja_case to, struct xm_jinja_buffer *b)
{
    const char *marks = xm_jinja_marks_of(r, s);
    bool upper = to != XM_JINJA_LOWER;
    for (size_t at = 0; at < s.n;) {
        int32_t code;
        size_t n = xm_utf8_next(xm_slice_of(s.text + at, s.n - at), &code);
        size_t from = b->text.n;
        if (to == XM_JINJA_SWAPPED)
            upper = is_lower(code);
        if (to == XM_JINJA_FOLDED)
            add_folded(code, &b->text);
        else if (code == 0xdf && upper) /* sharp s: its upper case is two letters */
            xm_strbuf_add(&b->text,
                          to == XM_JINJA_UPPER || to == XM_JINJA_SWAPPED ? "SS" : "Ss");
        else
            xm_utf8_add(&b->text, !upper ? utf8proc_tolower(code)
                                  : to == XM_JINJA_UPPER || to == XM_JINJA_SWAPPED
                                      ? utf8proc_toupper(code)
                                      : utf8proc_totitle(code));
        if (marks && marks[at])
            xm_jinja_mark_from(b, from);
        if (to == XM_JINJA_CAPITAL)
            upper = false;
        else if (to == XM_JINJA_WORDS)
            upper = !is_letter(code);
        at += n;
    }
}

/* Charges the steps of the worst case before searching, so that no text takes more time than the
 * limit allows. */
enum xm_status
xm_jinja_find_text(struct xm_jinja_run *r, struct xm_slice s, struct xm_slice what,
                   size_t from, size_t *out)
{
    *out = SIZE_MAX;
    if (from > s.n || s.n - from < what.n)
        return XM_OK;
    if (what.n == 0) {
        *out = from;
        return XM_OK;
    }
    uint64_t compared = 0;
    size_t last = s.n - what.n;
    while (from <= last) {
        const char *p = memchr(s.text + from, what.text[0], last - from + 1);
        if (!p)
            break;
        compared += what.n;
        from = (size_t)(p - s.text);
        if (memcmp(p, what.text, what.n) == 0) {
            *out = from;
            break;
        }
        if (compared > 4096) {
            XM_TRY(xm_jinja_charge_text(r, compared));
            compared = 0;
        }
        from++;
    }
    return XM_OK;
}

enum xm_status
xm_jinja_find_last_text(struct xm_jinja_run *r, struct xm_slice s, struct xm_slice what,
                        size_t from, size_t *out)
{
    uint64_t compared = 0;
    *out = SIZE_MAX;
    if (s.n < what.n)
        return XM_OK;
    for (size_t at = s.n - what.n + 1; at-- > from;) {
        const bool may = what.n == 0 || s.text[at] == what.text[0];
        compared += 1 + (may ? what.n : 0);
        if (may && (what.n == 0 || memcmp(s.text + at, what.text, what.n) == 0)) {
            *out = at;
            break;
        }
        if (compared > 4096) {
            XM_TRY(xm_jinja_charge_text(r, compared));
            compared = 0;
        }
    }
    return XM_OK;
}

struct xm_slice
xm_jinja_next_line(struct xm_slice s, size_t *from)
{
    size_t start = *from, at = start;
    while (at < s.n) {
        int32_t code;
        size_t n = xm_utf8_next(xm_slice_of(s.text + at, s.n - at), &code);
        bool ends = (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) ||
                    code == 0x85 || code == 0x2028 || code == 0x2029;
        if (ends) {
            bool pair = code == '\r' && at + 1 < s.n && s.text[at + 1] == '\n';
            *from = at + n + pair;
            return xm_slice_of(s.text + start, at - start);
        }
        at += n;
    }
    *from = s.n;
    return xm_slice_of(s.text + start, s.n - start);
}

/* Inserts `to` before each character and at the end, `count` times at most. */
static void
insert_everywhere(const struct xm_jinja_run *r, struct xm_slice s, struct xm_slice to,
                  int64_t count, struct xm_jinja_buffer *b)
{
    for (size_t at = 0; at < s.n;) {
        if (count-- != 0)
            xm_jinja_add(r, b, to);
        else
            count = 0;
        size_t n = xm_jinja_offset(xm_slice_of(s.text + at, s.n - at), 1);
        xm_jinja_add(r, b, xm_slice_of(s.text + at, n));
        at += n;
    }
    if (count != 0)
        xm_jinja_add(r, b, to);
}

static enum xm_status
replace_all(struct xm_jinja_run *r, struct xm_slice s, const struct xm_slice pair[2],
            int64_t count, struct xm_jinja_buffer *b)
{
    size_t from = 0, at = 0;
    while (count-- != 0) {
        XM_TRY(xm_jinja_find_text(r, s, pair[0], from, &at));
        if (at == SIZE_MAX)
            break;
        xm_jinja_add(r, b, xm_slice_of(s.text + from, at - from));
        xm_jinja_add(r, b, pair[1]);
        from = at + pair[0].n;
        XM_TRY(xm_jinja_check_size(r, b));
    }
    xm_jinja_add(r, b, xm_slice_of(s.text + from, s.n - from));
    return XM_OK;
}

enum xm_status
xm_jinja_replace(struct xm_jinja_run *r, struct xm_slice s, struct xm_slice old,
                 struct xm_slice to, int64_t count, struct xm_jinja_value *out)
{
    struct xm_jinja_buffer b = {0};
    const struct xm_slice pair[2] = {old, to};
    enum xm_status status = XM_OK;
    uint64_t size = 0;
    if (old.n > 0)
        status = replace_all(r, s, pair, count, &b);
    else if (!xm_mul_size(s.n + 1, to.n + 1, &size) || size > r->limits->output_bytes)
        status =
            xm_jinja_fail(r, "a text has more than %zu bytes", r->limits->output_bytes);
    else
        insert_everywhere(r, s, to, count, &b);
    if (status == XM_OK)
        return xm_jinja_take_text(r, &b, out);
    xm_jinja_buffer_free(&b);
    return status;
}
