/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/strbuf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/memory.h"
#include "runtime/util/number.h"

static bool
reserve(struct xm_strbuf *b, size_t more)
{
    if (b->failed || more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4) {
        b->failed = true;
        return false;
    }
    size_t need = b->n + more + 1;
    if (need <= b->capacity)
        return true;
    size_t capacity = b->capacity ? b->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *text = xm_realloc(b->text, capacity);
    if (!text) {
        b->failed = true;
        return false;
    }
    b->text = text;
    b->capacity = capacity;
    return true;
}

void
xm_strbuf_add_n(struct xm_strbuf *b, const char *s, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n > 0) /* s may be NULL */
        memcpy(b->text + b->n, s, n);
    b->n += n;
    b->text[b->n] = '\0';
}

void
xm_strbuf_add(struct xm_strbuf *b, const char *s)
{
    xm_strbuf_add_n(b, s, strlen(s));
}

void
xm_strbuf_add_markup(struct xm_strbuf *b, const char *s, size_t n)
{
    static const struct {
        char character;
        const char *entity;
    } rows[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    for (const char *const end = s + n; s < end; s++) {
        size_t i = 0;
        while (i < XM_ARRAY_LEN(rows) && rows[i].character != *s)
            i++;
        if (i < XM_ARRAY_LEN(rows))
            xm_strbuf_add(b, rows[i].entity);
        else
            xm_strbuf_add_n(b, s, 1);
    }
}

void
xm_strbuf_print_v(struct xm_strbuf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = xm_print_v(NULL, 0, fmt, ap);
    if (n < 0)
        b->failed = true;
    else if (reserve(b, (size_t)n))
        b->n += (size_t)xm_print_v(b->text + b->n, (size_t)n + 1, fmt, again);
    va_end(again);
}

void
xm_strbuf_printf(struct xm_strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    xm_strbuf_print_v(b, fmt, ap);
    va_end(ap);
}

bool
xm_strbuf_is_blank(const struct xm_strbuf *b)
{
    return strspn(xm_strbuf_text(b), " \t\r\n") == b->n;
}

bool
xm_strbuf_ok(const struct xm_strbuf *b)
{
    return !b->failed;
}

const char *
xm_strbuf_text(const struct xm_strbuf *b)
{
    return b->text ? b->text : "";
}

char *
xm_strbuf_take(struct xm_strbuf *b)
{
    char *text = NULL;
    if (reserve(b, 0)) {
        text = b->text;
        text[b->n] = '\0';
        *b = (struct xm_strbuf){0};
    } else {
        xm_strbuf_free(b);
    }
    return text;
}

void
xm_strbuf_drop(struct xm_strbuf *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->text, b->text + n, b->n - n + 1); /* with its NUL */
    b->n -= n;
}

void
xm_strbuf_clear(struct xm_strbuf *b)
{
    b->n = 0;
    b->failed = false;
    if (b->text)
        b->text[0] = '\0';
}

void
xm_strbuf_free(struct xm_strbuf *b)
{
    xm_free(b->text);
    *b = (struct xm_strbuf){0};
}

bool
xm_list_has(const char *list, char separator, const char *word, size_t n)
{
    for (const char *at = list; at;) {
        const char *end = strchr(at, separator);
        const size_t length = end ? (size_t)(end - at) : strlen(at);
        if (n && length == n && memcmp(at, word, n) == 0)
            return true;
        at = end ? end + 1 : NULL;
    }
    return false;
}
