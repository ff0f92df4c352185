/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that a person types, or that come line by line through a pipe.
 *
 * On a terminal lines are edited, with the history of earlier ones, if the program was built
 * with libedit; else the terminal's own line editing serves. A line that ends with a backslash
 * goes on in the next one. While a line is read, Ctrl-C must be noted (interrupt.h).
 */
#ifndef XM_PLUGIN_CLI_LINE_INPUT_H
#define XM_PLUGIN_CLI_LINE_INPUT_H

#include <stdbool.h>

#include "plugin/cli/line_editor.h"

/* No message is longer. */
enum { XM_LINE_MOST_MIB = 64 };

struct xm_line_input;

/* interactive: standard input and standard error are a person's terminal. remembers: lines of
 * earlier conversations come back, and those of this one are kept. */
enum xm_status xm_line_input_create(bool interactive, bool remembers,
                                    struct xm_line_input **out, struct xm_error *err);
void xm_line_input_free(struct xm_line_input *in); /* NULL is allowed */
/* One message, into `out`, which is cleared before. */
enum xm_line xm_line_input_read(struct xm_line_input *in, struct xm_strbuf *out,
                                struct xm_error *err);

#endif
