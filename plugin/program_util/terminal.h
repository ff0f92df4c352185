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
/* A descriptor of the terminal on standard input, from which reads do not wait, whatever those of
 * standard input do; for xm_terminal_close_input. Standard input itself if that is no terminal, or
 * cannot be opened a second time. Ctrl-C empties a terminal's input: a read that follows poll() may
 * find nothing, and must not wait for a key with the signal not looked at. */
int xm_terminal_open_input(void);
void xm_terminal_close_input(int fd);
/* Width of the terminal in columns; 80 if it is not known. */
size_t xm_terminal_columns(int fd);
/* Columns of a character: 0, 1 or 2. */
size_t xm_terminal_char_width(int32_t code);
/* Bytes of the longest beginning of `text` (n bytes) that fits into `columns`; whole characters. */
size_t xm_terminal_fit(const char *text, size_t n, size_t columns);
/* Columns of `text` (n bytes). */
size_t xm_terminal_width(const char *text, size_t n);
/* Appends `text`, with lines of more than `columns` columns broken at spaces. A line goes on below
 * its description, which stands behind two spaces or more. Lines that begin with "example:" stay
 * whole, to be copied. */
void xm_terminal_wrap(const char *text, size_t columns, struct xm_strbuf *out);
/* Writes `text`, where `to` is a terminal in lines that fit into it, and into 100 columns. */
void xm_terminal_print(FILE *to, const char *text);

#ifdef __cplusplus
}
#endif
#endif
