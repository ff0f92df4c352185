/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that test the kinds of their characters, by Unicode category. Not supported:
 * letters with a numeric value (Chinese numerals) do not count as numeric.
 *
 * Not done: letters that have a number as their value (Chinese numerals) are not numeric.
 */
#include <utf8proc.h>

#include "plugin/text/jinja/methods.h"
#include "runtime/util/utf8.h"

typedef struct xm_jinja_value value;
typedef const struct xm_jinja_args args;
typedef bool kind_of(int32_t code);

static bool
is_alpha(int32_t code)
{
    const utf8proc_category_t c = utf8proc_category(code);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool
xm_jinja_is_decimal(int32_t code)
{
    return utf8proc_category(code) == UTF8PROC_CATEGORY_ND;
}

/* Returns whether a character is a digit: decimal, superscript, subscript, circled or in
 * brackets. */
static bool
is_digit(int32_t code)
{
    static const int32_t ranges[][2] = {
        {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
        {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
        {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
        {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
        {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return xm_jinja_is_decimal(code);
}

static bool
is_numeric(int32_t code)
{
    const utf8proc_category_t c = utf8proc_category(code);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL ||
           c == UTF8PROC_CATEGORY_NO;
}

bool
xm_jinja_is_alphanumeric(int32_t code)
{
    return is_alpha(code) || is_numeric(code);
}

static bool
is_ascii(int32_t code)
{
    return code < 0x80;
}

static enum xm_status
all_are(struct xm_jinja_run *r, value self, kind_of *is, bool of_nothing, value *out)
{
    (void)r;
    struct xm_slice s = self.text;
    bool all = s.n > 0 || of_nothing;
    while (s.n > 0 && all) {
        int32_t code;
        const size_t n = xm_utf8_next(s, &code);
        all = is(code);
        s = xm_slice_of(s.text + n, s.n - n);
    }
    *out = xm_jinja_bool(all);
    return XM_OK;
}

/* Defines a method that returns whether all characters are of a kind; `of_nothing`: its result for
 * an empty string. */
#define ALL_ARE(name, kind, of_nothing)                                                  \
    enum xm_status xm_jinja_string_##name(struct xm_jinja_run *r, value self, args *a,   \
                                          value *out)                                    \
    {                                                                                    \
        (void)a;                                                                         \
        return all_are(r, self, kind, of_nothing, out);                                  \
    }

ALL_ARE(isalnum, xm_jinja_is_alphanumeric, false)
ALL_ARE(isalpha, is_alpha, false)
ALL_ARE(isascii, is_ascii, true)
ALL_ARE(isdecimal, xm_jinja_is_decimal, false)
ALL_ARE(isdigit, is_digit, false)
ALL_ARE(isnumeric, is_numeric, false)
ALL_ARE(isprintable, xm_jinja_is_printable, true)
ALL_ARE(isspace, xm_jinja_is_space, false)

enum xm_status
xm_jinja_string_isidentifier(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    struct xm_slice s = self.text;
    bool ok = s.n > 0;
    for (bool first = true; ok && s.n > 0; first = false) {
        int32_t code;
        const size_t n = xm_utf8_next(s, &code);
        ok = first ? is_alpha(code) || code == '_' ||
                         utf8proc_category(code) == UTF8PROC_CATEGORY_NL
                   : xm_utf8_is_word(code);
        s = xm_slice_of(s.text + n, s.n - n);
    }
    *out = xm_jinja_bool(ok);
    return XM_OK;
}

/* The cases of the letters in a text. */
struct cases {
    /* `words`: each word begins with a capital and has no other */
    bool lower, upper, title, words;
};

static struct cases
find_cases(struct xm_slice s)
{
    struct cases found = {.words = true};
    bool inside = false; /* inside a word */
    while (s.n > 0) {
        int32_t code;
        const size_t n = xm_utf8_next(s, &code);
        const utf8proc_category_t c = utf8proc_category(code);
        const bool lower = utf8proc_islower(code) || c == UTF8PROC_CATEGORY_LL;
        const bool title = c == UTF8PROC_CATEGORY_LT;
        const bool upper =
            !title && (utf8proc_isupper(code) || c == UTF8PROC_CATEGORY_LU);
        found.words = found.words && !(inside ? upper || title : lower);
        found.lower = found.lower || lower;
        found.upper = found.upper || upper;
        found.title = found.title || title;
        inside = lower || upper || title;
        s = xm_slice_of(s.text + n, s.n - n);
    }
    return found;
}

enum xm_status
xm_jinja_string_islower(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    const struct cases c = find_cases(self.text);
    *out = xm_jinja_bool(c.lower && !c.upper && !c.title);
    return XM_OK;
}

enum xm_status
xm_jinja_string_isupper(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    const struct cases c = find_cases(self.text);
    *out = xm_jinja_bool(c.upper && !c.lower && !c.title);
    return XM_OK;
}

enum xm_status
xm_jinja_string_istitle(struct xm_jinja_run *r, value self, args *a, value *out)
{
    (void)r;
    (void)a;
    const struct cases c = find_cases(self.text);
    *out = xm_jinja_bool(c.words && (c.upper || c.title));
    return XM_OK;
}
