/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/utf8.h"

#include <utf8proc.h>

/* Well-formed sequences, Unicode Standard table 3-7: the lead byte fixes the length and
 * the range of the second byte; later bytes are 80..BF. */
static const struct lead {
    uint8_t first, last; /* lead bytes             */
    uint8_t n;           /* bytes of the character */
    uint8_t low, high;   /* second byte            */
} leads[] = {
    /* clang-format off */
    { 0xc2, 0xdf, 2, 0x80, 0xbf },
    { 0xe0, 0xe0, 3, 0xa0, 0xbf },
    { 0xe1, 0xec, 3, 0x80, 0xbf },
    { 0xed, 0xed, 3, 0x80, 0x9f },
    { 0xee, 0xef, 3, 0x80, 0xbf },
    { 0xf0, 0xf0, 4, 0x90, 0xbf },
    { 0xf1, 0xf3, 4, 0x80, 0xbf },
    { 0xf4, 0xf4, 4, 0x80, 0x8f },
    /* clang-format on */
};

size_t
xm_utf8_next(struct xm_slice s, int32_t *code)
{
    const uint8_t *p = (const uint8_t *)s.text;
    *code = p[0];
    if (p[0] < 0x80)
        return 1;
    const struct lead *lead = leads;
    const struct lead *end = leads + XM_ARRAY_LEN(leads);
    while (lead < end && (p[0] < lead->first || p[0] > lead->last))
        lead++;
    *code = XM_UTF8_BAD;
    if (lead == end)
        return 1;
    int32_t value = p[0] & (0x7f >> lead->n);
    for (size_t i = 1; i < lead->n; i++) {
        if (i == s.n) {
            *code = XM_UTF8_PARTIAL;
            return i;
        }
        if (p[i] < (i == 1 ? lead->low : 0x80) || p[i] > (i == 1 ? lead->high : 0xbf))
            return i;
        value = value << 6 | (p[i] & 0x3f);
    }
    *code = value;
    return lead->n;
}

void
xm_utf8_add(struct xm_strbuf *out, int32_t code)
{
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t n = utf8proc_encode_char(code, bytes);
    xm_strbuf_add_n(out, (const char *)bytes, (size_t)n);
}

bool
xm_utf8_is_valid(struct xm_slice s)
{
    int32_t code;
    for (size_t i = 0; i < s.n;) {
        i += xm_utf8_next(xm_slice_of(s.text + i, s.n - i), &code);
        if (code < 0)
            return false;
    }
    return true;
}

void
xm_utf8_repair(struct xm_slice s, struct xm_strbuf *out)
{
    size_t copied = 0;
    int32_t code;
    for (size_t i = 0, n; i < s.n; i += n) {
        n = xm_utf8_next(xm_slice_of(s.text + i, s.n - i), &code);
        if (code >= 0)
            continue;
        xm_strbuf_add_n(out, s.text + copied, i - copied);
        xm_utf8_add(out, XM_UTF8_REPLACEMENT);
        copied = i + n;
    }
    if (copied < s.n)
        xm_strbuf_add_n(out, s.text + copied, s.n - copied);
}

/* Whether a code point is a control character of ASCII or ISO 6429, which terminals obey. */
static bool
is_control(int32_t code)
{
    return (code >= 0 && code < 0x20) || (code >= 0x7f && code < 0xa0);
}

void
xm_utf8_show(struct xm_slice s, char *out, size_t out_bytes)
{
    size_t n = 0, length;
    for (size_t i = 0; i < s.n; i += length) {
        int32_t code;
        struct xm_slice c = {s.text + i, 0};
        c.n = length = xm_utf8_next(xm_slice_of(s.text + i, s.n - i), &code);
        if (code < 0)
            c = xm_slice_of("\xef\xbf\xbd", 3); /* XM_UTF8_REPLACEMENT */
        else if (is_control(code))
            c = xm_slice_of("?", 1);
        if (c.n >= out_bytes - n)
            break;
        memcpy(out + n, c.text, c.n);
        n += c.n;
    }
    out[n] = '\0';
}

struct xm_shown
xm_utf8_shown(struct xm_slice s)
{
    struct xm_shown shown;
    xm_utf8_show(s, shown.text, sizeof(shown.text));
    return shown;
}

bool
xm_utf8_is_space(int32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 ||
           code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

bool
xm_utf8_is_word(int32_t code)
{
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return code == 0x200c || code == 0x200d; /* the two join controls */
    }
}

bool
xm_utf8_is_mark(int32_t code)
{
    utf8proc_category_t category = utf8proc_category(code);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

int32_t
xm_utf8_lower(int32_t code)
{
    return utf8proc_tolower(code);
}

struct xm_slice
xm_utf8_trim_left(struct xm_slice s)
{
    int32_t code;
    while (s.n > 0) {
        size_t n = xm_utf8_next(s, &code);
        if (!xm_utf8_is_space(code))
            break;
        s = xm_slice_of(s.text + n, s.n - n);
    }
    return s;
}

struct xm_slice
xm_utf8_trim_right(struct xm_slice s)
{
    int32_t code;
    while (s.n > 0) {
        size_t start = s.n - 1;
        while (start > 0 && ((uint8_t)s.text[start] & 0xc0) == 0x80)
            start--;
        xm_utf8_next(xm_slice_of(s.text + start, s.n - start), &code);
        if (!xm_utf8_is_space(code))
            break;
        s.n = start;
    }
    return s;
}
