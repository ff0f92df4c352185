/* SPDX-License-Identifier: Apache-2.0
 *
 * What a standard stream is: a terminal or not, how wide, and what may be sent to it.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_TERMINAL_H
#define XM_PLUGIN_PROGRAM_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Select graphic rendition (ECMA-48): faint, and neither bold nor faint; green, and the usual
 * colour. */
#define XM_STYLE_DIM     "\033[2m"
#define XM_STYLE_NOT_DIM "\033[22m"
#define XM_STYLE_GREEN   "\033[32m"
#define XM_STYLE_USUAL   "\033[39m"

bool xm_terminal_is(int fd);
/* A terminal that understands escape codes: TERM is set, and not to "dumb". */
bool xm_terminal_has_escapes(int fd);
/* That, and the user has not asked for plain text with NO_COLOR (https://no-color.org). */
bool xm_terminal_has_styles(int fd);
/* Columns of the terminal; 80 where it does not say. */
size_t xm_terminal_columns(int fd);
/* Columns that a character takes: 0, 1 or 2. */
size_t xm_terminal_char_width(int32_t code);
/* How many bytes of `text` fit into this many columns, whole characters only. */
size_t xm_terminal_fit(const char *text, size_t n, size_t columns);
/* Columns that the text takes. */
size_t xm_terminal_width(const char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
