/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel_defines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/number.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS  "0123456789"

/* marks a text that did not fit; complete options never contain it */
static const char cut[] = "!";

size_t
xm_defines_print_v(char *out, size_t n, const char *fmt, va_list ap)
{
    int got = xm_print_v(out, n, fmt, ap);
    /* leaves room to mark text that follows as cut */
    if (got >= 0 && (size_t)got + sizeof(cut) <= n)
        return (size_t)got;
    if (n < sizeof(cut))
        return 0;
    memcpy(out, cut, sizeof(cut));
    return sizeof(cut) - 1;
}

size_t
xm_defines_print(char *out, size_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t got = xm_defines_print_v(out, n, fmt, ap);
    va_end(ap);
    return got;
}

/* A part of the build options. */
struct span {
    const char *at;
    size_t n;
};

static bool
is_name(struct span s)
{
    return s.n > 0 && strchr(LETTERS, s.at[0]) && s.at[0] &&
           strspn(s.at, LETTERS DIGITS) >= s.n;
}

/* A number such as 12, -3u, 1.5f, 1.00000000e-06f. */
static bool
is_number(struct span s)
{
    const char *p = s.at + (s.n > 0 && (s.at[0] == '-' || s.at[0] == '+'));
    const char *const end = s.at + s.n;
    size_t digits = strspn(p, DIGITS);
    p += digits;
    if (p < end && *p == '.') {
        size_t more = strspn(++p, DIGITS);
        digits += more;
        p += more;
    }
    if (digits && p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '-' || *p == '+');
        size_t exponent = strspn(p, DIGITS);
        digits = exponent ? digits : 0;
        p += exponent;
    }
    p += strspn(p, "fuUlL");
    return digits > 0 && p == end;
}

/* The text up to the next character `ends` that is not in parentheses. */
static struct span
next_part(const char *at, const char *end, char ends)
{
    int depth = 0;
    const char *p = at;
    for (; p < end && (depth > 0 || *p != ends); p++)
        depth += (*p == '(') - (*p == ')');
    return (struct span){at, (size_t)(p - at)};
}

static bool is_value(struct span s, int depth);

/* The number of values in a list separated by commas; 0: some part is no value. */
static uint64_t
count_values(struct span s, int depth)
{
    uint64_t n = 0;
    const char *const end = s.at + s.n;
    for (const char *p = s.at;; p++) {
        struct span part = next_part(p, end, ',');
        if (!is_value(part, depth))
            return 0;
        n++;
        p = part.at + part.n;
        if (p == end)
            return n;
    }
}

/* Whether the text is a sequence of macro calls NAME(…)NAME(…)…, as for the steps of a row
 * chain. */
static bool
is_calls(struct span s, int depth)
{
    enum { DEPTH = 4 };
    const char *p = s.at, *const end = s.at + s.n;
    while (p < end) {
        struct span name = {p, strspn(p, LETTERS DIGITS)};
        const char *open = p + name.n;
        if (!is_name(name) || open >= end || *open != '(' || depth == DEPTH)
            return false;
        struct span inner = next_part(open + 1, end, ')');
        p = inner.at + inner.n;
        if (p >= end || !count_values(inner, depth + 1))
            return false;
        p++;
    }
    return s.n > 0;
}

static bool
is_value(struct span s, int depth)
{
    return is_name(s) || is_number(s) || is_calls(s, depth);
}

/* The number n of an option -DN_<name>=n; 0: there is none. */
static uint64_t
declared(const char *defines, struct span name)
{
    static const char word[] = "-DN_";
    const size_t skip = sizeof(word) - 1;
    for (const char *p = defines; (p = strstr(p, word)); p += skip)
        if ((p == defines || p[-1] == ' ') && strncmp(p + skip, name.at, name.n) == 0 &&
            p[skip + name.n] == '=')
            return strtoull(p + skip + name.n + 1, NULL, 10);
    return 0;
}

static enum xm_status
check_define(const char *defines, struct span s, struct xm_error *err)
{
    const char *equals = memchr(s.at, '=', s.n);
    const struct span name = {s.at, equals ? (size_t)(equals - s.at) : s.n};
    if (!is_name(name))
        return xm_fail(err, XM_NOT_BUILT, "the build option '-D%.*s' has no name",
                       (int)s.n, s.at);
    if (!equals)
        return XM_OK;
    const struct span value = {equals + 1, s.n - name.n - 1};
    const uint64_t n = count_values(value, 0), expected = declared(defines, name);
    if (n == 0)
        return xm_fail(
            err, XM_NOT_BUILT,
            "the build option '-D%.*s' is not made of numbers, names and calls", (int)s.n,
            s.at);
    if (n != (expected ? expected : 1))
        return xm_fail(err, XM_NOT_BUILT,
                       "the build option '-D%.*s' has %" PRIu64
                       " values: expected %" PRIu64 "%s%.*s",
                       (int)s.n, s.at, n, expected ? expected : 1,
                       expected ? ", the value of N_" : "", expected ? (int)name.n : 0,
                       name.at);
    return XM_OK;
}

enum xm_status
xm_defines_check(const char *defines, struct xm_error *err)
{
    if (strstr(defines, cut))
        return xm_fail(err, XM_NOT_BUILT, "the build options of a kernel are too long");
    for (const char *p = defines + strspn(defines, " "); *p; p += strspn(p, " ")) {
        const struct span s = {p, strcspn(p, " ")};
        p += s.n;
        if (strncmp(s.at, "-D", 2) == 0)
            XM_TRY(check_define(defines, (struct span){s.at + 2, s.n - 2}, err));
        else if (strncmp(s.at, "-cl-", 4) != 0 && strncmp(s.at, "-W", 2) != 0)
            return xm_fail(err, XM_NOT_BUILT, "'%.*s' is not a build option", (int)s.n,
                           s.at);
    }
    return XM_OK;
}
