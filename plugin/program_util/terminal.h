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
/* Whether fd is a terminal that understands escape codes: TERM is set, and is not "dumb". */
bool xm_terminal_has_escapes(int fd);
/* As xm_terminal_has_escapes, and NO_COLOR (https://no-color.org) is not set. */
bool xm_terminal_has_styles(int fd);
/* Opens the terminal of standard input a second time, for non-blocking reads; standard input itself
 * stays blocking. Returns standard input if it is not a terminal or cannot be opened; free the
 * result with xm_terminal_close_input. The reason: Ctrl-C discards a terminal's input, so that a
 * read after poll() may find nothing. A blocking read would then wait for a key, and the signal
 * would not be handled. */
int xm_terminal_open_input(void);
void xm_terminal_close_input(int fd);
/* Width of the terminal in columns; 80 if it is not known. */
size_t xm_terminal_columns(int fd);
/* Returns the width at which lines are wrapped: one less than the terminal's; SIZE_MAX: fd is not a
 * terminal. */
size_t xm_terminal_line(int fd);
/* Returns the columns of a character: 0, 1 or 2. */
size_t xm_terminal_char_width(int32_t code);
/* Returns the bytes of the longest beginning of `text` (n bytes), in whole characters, that fits
 * into `columns`. */
size_t xm_terminal_fit(const char *text, size_t n, size_t columns);
/* Returns the columns of `text` (n bytes). */
size_t xm_terminal_width(const char *text, size_t n);
/* Returns the bytes of the first line of a text of n bytes that is wrapped at `columns`: up to a
 * space, or inside a word that is longer than a line. *skip: these bytes and the following space.
 * At least one character. */
size_t xm_terminal_first_line(const char *text, size_t n, size_t columns, size_t *skip);
/* Appends `text`, with lines of more than `columns` columns wrapped at spaces. Continuation lines
 * are indented to the description: the text after two or more spaces. Lines that begin with
 * "example:" are not wrapped, so that they can be copied. */
void xm_terminal_wrap(const char *text, size_t columns, struct xm_strbuf *out);
/* Writes a text of one line at column `at` of the current line, of which `used` columns are
 * written, wrapped at `columns` (SIZE_MAX: not wrapped); continuation lines are aligned with the
 * first. If fewer than 24 columns are left after `at`, and the text needs more, it begins on the
 * next line, indented by two. Does not write a newline after it. */
void xm_terminal_print_beside(FILE *to, const char *text, size_t used, size_t at,
                              size_t columns);
/* Writes `text` with its lines wrapped: on a terminal at its width, but at least 40 and at most 100
 * columns; elsewhere at 80. */
void xm_terminal_print(FILE *to, const char *text);

#ifdef __cplusplus
}
#endif
#endif
