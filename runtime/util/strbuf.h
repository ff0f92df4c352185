/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing string. Failure is sticky: after the first failed append every later one does
 * nothing, and xm_strbuf_ok() says so; one check at the end is enough.
 */
#ifndef XM_RUNTIME_UTIL_STRBUF_H
#define XM_RUNTIME_UTIL_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/util/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_strbuf {
    char *text; /* NUL-terminated, owned; NULL while empty */
    size_t n;   /* length without the NUL                  */
    size_t capacity;
    bool failed;
};

/* Append the text `s`, or its first n bytes. */
void xm_strbuf_add(struct xm_strbuf *b, const char *s);
void xm_strbuf_add_n(struct xm_strbuf *b, const char *s, size_t n);
/* Appends n bytes with & < > " escaped as entities, for texts and attributes of XML and HTML. */
void xm_strbuf_add_markup(struct xm_strbuf *b, const char *s, size_t n);
/* Append formatted text; numbers have a decimal point in every locale (number.h). */
void xm_strbuf_printf(struct xm_strbuf *b, const char *fmt, ...) XM_PRINTF(2, 3);
void xm_strbuf_print_v(struct xm_strbuf *b, const char *fmt, va_list ap);
/* Whether the string is empty or has only spaces, tabs and line ends. */
bool xm_strbuf_is_blank(const struct xm_strbuf *b);
bool xm_strbuf_ok(const struct xm_strbuf *b); /* false: an append found no memory */
const char *xm_strbuf_text(const struct xm_strbuf *b); /* "" while empty, never NULL  */
/* Returns the text, which the caller owns (xm_free), and empties *b; NULL: an append failed. */
char *xm_strbuf_take(struct xm_strbuf *b);
/* removes the first n <= b->n bytes */
void xm_strbuf_drop(struct xm_strbuf *b, size_t n);
void xm_strbuf_clear(struct xm_strbuf *b); /* length 0, memory kept                   */
void xm_strbuf_free(struct xm_strbuf *b);

/* Whether `list`, words separated by `separator`, contains `word` (n bytes). */
bool xm_list_has(const char *list, char separator, const char *word, size_t n);

#ifdef __cplusplus
}
#endif
#endif
