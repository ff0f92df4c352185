/* SPDX-License-Identifier: Apache-2.0
 *
 * What a standard stream is: a terminal or not, how wide, and what may be sent to it.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_TERMINAL_H
#define XM_PLUGIN_PROGRAM_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

bool xm_terminal_is(int fd);
/* A terminal that understands escape codes: TERM is set, and not to "dumb". */
bool xm_terminal_has_escapes(int fd);
/* That, and the user has not asked for plain text with NO_COLOR (https://no-color.org). */
bool xm_terminal_has_styles(int fd);
/* Columns of the terminal; 80 where it does not say. */
size_t xm_terminal_columns(int fd);
/* How many bytes of `text` fit into this many columns, whole characters only. */
size_t xm_terminal_fit(const char *text, size_t n, size_t columns);

#ifdef __cplusplus
}
#endif
#endif
