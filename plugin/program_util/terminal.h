/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of a terminal, and the width of text on it.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_TERMINAL_H
#define XM_PLUGIN_PROGRAM_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Escape codes (ECMA-48): faint, not faint; green, default colour. */
#define XM_STYLE_DIM     "\033[2m"
#define XM_STYLE_NOT_DIM "\033[22m"
#define XM_STYLE_GREEN   "\033[32m"
#define XM_STYLE_USUAL   "\033[39m"

bool xm_terminal_is(int fd);
/* A terminal that understands escape codes: TERM is set, and not to "dumb". */
bool xm_terminal_has_escapes(int fd);
/* The same, and NO_COLOR (https://no-color.org) is not set. */
bool xm_terminal_has_styles(int fd);
/* Opens the terminal on standard input a second time, without blocking reads, which standard input
 * itself keeps. Returns standard input if that is no terminal or cannot be opened; free the result
 * with xm_terminal_close_input. The reason: Ctrl-C empties a terminal's input, so a read that
 * follows poll() may find nothing; if it waited for a key, the signal would not be handled. */
int xm_terminal_open_input(void);
void xm_terminal_close_input(int fd);
/* Width of the terminal in columns; 80 if it is not known. */
size_t xm_terminal_columns(int fd);
/* Columns of the longest line that is not broken: all but the last of a terminal; SIZE_MAX: fd is
 * no terminal. */
size_t xm_terminal_line(int fd);
/* Columns of a character: 0, 1 or 2. */
size_t xm_terminal_char_width(int32_t code);
/* Bytes of the longest beginning of `text` (n bytes) that fits into `columns`; whole characters. */
size_t xm_terminal_fit(const char *text, size_t n, size_t columns);
/* Columns of `text` (n bytes). */
size_t xm_terminal_width(const char *text, size_t n);
/* Bytes of the line that a text of n bytes begins with where it is broken at `columns`: up to a
 * space, or within a word that is longer than a line; *skip: the space behind it as well. At least
 * one character. */
size_t xm_terminal_first_line(const char *text, size_t n, size_t columns, size_t *skip);
/* Appends `text`, with lines of more than `columns` columns broken at spaces. A broken line goes on
 * below its description: the text behind two or more spaces. Lines that begin with "example:" stay
 * whole, so that they can be copied. */
void xm_terminal_wrap(const char *text, size_t columns, struct xm_strbuf *out);
/* Writes a text of one line behind `used` columns that the present line has, from column `at` on,
 * broken at `columns` (SIZE_MAX: not broken); its further lines stand below its first. Where
 * fewer than 24 columns are left behind `at`, and they do not suffice, the text begins in the next
 * line, two columns in. Writes no newline behind it. */
void xm_terminal_print_beside(FILE *to, const char *text, size_t used, size_t at,
                              size_t columns);
/* Writes `text` with its lines broken: on a terminal at its width, at 40 columns at least and at
 * 100 at most; elsewhere at 80. */
void xm_terminal_print(FILE *to, const char *text);

#ifdef __cplusplus
}
#endif
#endif
