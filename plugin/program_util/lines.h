/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints facts and tables as lines that fit the terminal. Output to a file or pipe is not wrapped.
 *
 *     struct xm_lines o = xm_lines_to(stdout);
 *     xm_lines_add(&o, "%-16s %12.1f MiB  %s\n", "weights", mib, "copied to the device");
 *     xm_lines_end(&o);
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_LINES_H
#define XM_PLUGIN_PROGRAM_UTIL_LINES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "runtime/util/compiler.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_lines {
    FILE *to;
    size_t columns;        /* maximum width of a line; SIZE_MAX: not wrapped */
    struct xm_strbuf line; /* the unfinished line */
};

struct xm_lines xm_lines_to(FILE *to);
/* Adds text and prints each line that is complete. */
void xm_lines_add(struct xm_lines *o, const char *format, ...) XM_PRINTF(2, 3);
/* Prints an incomplete last line and frees the members. */
void xm_lines_end(struct xm_lines *o);

/* Prints "xemoe: ", a sentence and a newline on standard error. */
void xm_say(const char *format, ...) XM_PRINTF(1, 2);
void xm_say_v(const char *format, va_list arguments);

/* A table. On a terminal that is narrower than its columns, each row is printed as "title cell,
 * title cell", without empty cells. */
struct xm_table_column {
    const char *title; /* "": the cell is printed without a title */
    int width;         /* width in characters; negative: left-aligned */
};
struct xm_table {
    const struct xm_table_column *columns;
    size_t n;
};
void xm_table_head(struct xm_lines *o, const struct xm_table *t);
void xm_table_row(struct xm_lines *o, const struct xm_table *t, const char *const *cells);

/* Appends a line without its newline, wrapped at `columns`: between two table columns, which two or
 * more spaces separate, else at a space, else within a word. Continuation lines are indented to the
 * last table column that leaves them 24 columns, or by two. */
void xm_lines_wrap(const char *line, size_t n, size_t columns, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
