/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads messages from standard input: typed on a terminal, or line by line from a pipe.
 *
 * On a terminal, lines are edited with libedit (line_editor.h), or by the terminal if the program
 * was built without it. A line that ends with a backslash is continued by the next line. The caller
 * must have called xm_cli_note_interrupt() (interrupt.h) while a line is read.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_LINE_INPUT_H
#define XM_PLUGIN_PROGRAM_UTIL_LINE_INPUT_H

#include <stdbool.h>

#include "plugin/program_util/line_editor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest message, in MiB. */
enum { XM_LINE_MOST_MIB = 64 };

struct xm_line_input;

/* Creates the input. `interactive`: standard input and standard error are a terminal. `remembers`:
 * the history of earlier conversations is available, and this one is added to it. */
enum xm_status xm_line_input_create(bool interactive, bool remembers,
                                    struct xm_line_input **out, struct xm_error *err);
void xm_line_input_free(struct xm_line_input *in); /* NULL is allowed */
/* Reads one message into `out`, which is cleared first. */
enum xm_line xm_line_input_read(struct xm_line_input *in, struct xm_strbuf *out,
                                struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
