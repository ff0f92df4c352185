/* SPDX-License-Identifier: Apache-2.0
 *
 * The lexer of graph text. The text may come from anyone, so nothing in it is trusted. */
#include "transformations/graph/lexer.h"

#include <stdio.h>
#include <string.h>

enum xm_status
xm_lex_fail(const struct xm_lexer *l, const char *fmt, ...)
{
    struct xm_error e = {0};
    va_list ap;
    va_start(ap, fmt);
    xm_fail_v(&e, XM_INVALID, fmt, ap);
    va_end(ap);
    return xm_lex_pass_on(l, &e);
}

enum xm_status
xm_lex_pass_on(const struct xm_lexer *l, const struct xm_error *cause)
{
    return xm_fail(l->err, cause->status, "line %u, column %u: %.440s", l->line,
                   (unsigned)(l->at - l->line_start) + 1, cause->text);
}

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '+' || c == '-';
}

char
xm_lex_peek(struct xm_lexer *l)
{
    while (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')
        l->at++;
    return *l->at;
}

bool
xm_lex_take(struct xm_lexer *l, char c)
{
    if (xm_lex_peek(l) != c)
        return false;
    l->at++;
    return true;
}

enum xm_status
xm_lex_expect(struct xm_lexer *l, char c)
{
    char found = xm_lex_peek(l);
    if (found == c) {
        l->at++;
        return XM_OK;
    }
    if (found == '\0' || found == '\n')
        return xm_lex_fail(l, "expected '%c', found the end of the line", c);
    return xm_lex_fail(l, "expected '%c', found '%c'", c, found);
}

enum xm_status
xm_lex_word(struct xm_lexer *l, const char *what, char out[XM_LEX_WORD])
{
    size_t n = 0;
    xm_lex_peek(l);
    while (is_word(l->at[n])) {
        if (n + 1 == XM_LEX_WORD)
            return xm_lex_fail(l, "a word is longer than %d characters", XM_LEX_WORD - 1);
        out[n] = l->at[n];
        n++;
    }
    if (n == 0)
        return xm_lex_fail(l, "expected %s", what);
    out[n] = '\0';
    l->at += n;
    return XM_OK;
}

enum xm_status
xm_lex_number(struct xm_lexer *l, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    char c = xm_lex_peek(l);
    if (c < '0' || c > '9')
        return xm_lex_fail(l, "expected a number");
    for (; *l->at >= '0' && *l->at <= '9'; l->at++) {
        if (!xm_mul_size(n, 10, &n) || !xm_add_size(n, (uint64_t)(*l->at - '0'), &n) ||
            n > max)
            return xm_lex_fail(l, "a number is above %llu", (unsigned long long)max);
    }
    *out = n;
    return XM_OK;
}

/* ---- strings ----------------------------------------------------------------------- */

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Reads the character behind a backslash. */
static enum xm_status
unescape(struct xm_lexer *l, char *out)
{
    char c = *l->at;
    if (c == 'x') {
        int high = hex_digit(l->at[1]);
        int low = high < 0 ? -1 : hex_digit(l->at[2]);
        if (low < 0 || high * 16 + low == 0)
            return xm_lex_fail(l, "\\x needs two hexadecimal digits, not 00");
        *out = (char)(high * 16 + low);
        l->at += 3;
        return XM_OK;
    }
    if (c != 'n' && c != '"' && c != '\\')
        return xm_lex_fail(l, "unknown escape in a string");
    *out = c == 'n' ? '\n' : c;
    l->at++;
    return XM_OK;
}

enum xm_status
xm_lex_string(struct xm_lexer *l, struct xm_arena *arena, const char **out)
{
    const char *end;
    char *text;
    size_t n = 0;
    XM_TRY(xm_lex_expect(l, '"'));
    for (end = l->at; *end && *end != '\n' && *end != '"'; end++)
        end += *end == '\\' && end[1] && end[1] != '\n';
    if (*end != '"')
        return xm_lex_fail(l, "a string has no closing quote");
    text = xm_arena_alloc(arena, (size_t)(end - l->at) + 1);
    if (!text)
        return xm_no_memory(l->err, "a string of graph text");
    while (l->at < end) {
        if (*l->at != '\\') {
            text[n++] = *l->at++;
            continue;
        }
        l->at++;
        XM_TRY(unescape(l, &text[n++]));
    }
    l->at = end + 1;
    *out = text;
    return XM_OK;
}

/* ---- types ------------------------------------------------------------------------- */

enum xm_status
xm_lex_dim(struct xm_lexer *l, struct xm_dim_pool *p, struct xm_dim *out)
{
    struct xm_error e = {0};
    const char *end = l->at;
    enum xm_status status = xm_dim_parse(p, l->at, &end, out, &e);
    l->at = end;
    return status == XM_OK ? XM_OK : xm_lex_pass_on(l, &e);
}

enum xm_status
xm_lex_element(struct xm_lexer *l, enum xm_element *out)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(l, "an element type", word));
    *out = xm_element_parse(word);
    if (*out == XM_ELEMENT_COUNT)
        return xm_lex_fail(l, "'%s' is not an element type", word);
    return XM_OK;
}

enum xm_status
xm_lex_type(struct xm_lexer *l, struct xm_dim_pool *p, struct xm_type *out)
{
    XM_TRY(xm_lex_element(l, &out->element));
    XM_TRY(xm_lex_expect(l, '['));
    out->shape.rank = 0;
    while (!xm_lex_take(l, ']')) {
        if (out->shape.rank == XM_MAX_RANK)
            return xm_lex_fail(l, "a shape has a rank above %d", XM_MAX_RANK);
        if (out->shape.rank > 0)
            XM_TRY(xm_lex_expect(l, ','));
        XM_TRY(xm_lex_dim(l, p, &out->shape.dim[out->shape.rank++]));
    }
    return XM_OK;
}

/* ---- lines ------------------------------------------------------------------------- */

bool
xm_lex_next_line(struct xm_lexer *l)
{
    for (;;) {
        l->at += strcspn(l->at, "\n");
        if (*l->at == '\0')
            return false;
        l->line_start = ++l->at;
        l->line++;
        char c = xm_lex_peek(l);
        if (c != '\n' && c != '#' && c != '\0')
            return true;
    }
}
