/* SPDX-License-Identifier: Apache-2.0
 *
 * Editing of lines on a terminal, with a history, by libedit; where the program was built
 * without it there never is an editor.
 *
 * Keys are UTF-8 in every locale: of the process's locale only LC_CTYPE is set, to one of
 * UTF-8. A block of lines that is pasted stays one text (the terminal brackets it). The
 * history is kept between conversations (input_history.h), and silently not kept where that cannot
 * be written.
 */
#ifndef XM_PLUGIN_CLI_LINE_EDITOR_H
#define XM_PLUGIN_CLI_LINE_EDITOR_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

enum xm_line {
    XM_LINE_TEXT, /* a message                                                      */
    XM_LINE_INTERRUPTED, /* Ctrl-C: what was typed, where that is known, is in `out`       */
    XM_LINE_END, /* of the input                                                   */
    XM_LINE_FAILED
};

struct xm_line_editor;

/* remembers: the history is read and kept. NULL: this terminal, or this build, cannot edit. */
struct xm_line_editor *xm_line_editor_create(bool remembers);
void xm_line_editor_free(struct xm_line_editor *e); /* NULL is allowed */
/* One line, or one pasted block, appended to `line` without its newline. */
enum xm_line xm_line_editor_read(struct xm_line_editor *e, const char *prompt,
                                 struct xm_strbuf *line, struct xm_error *err);
void xm_line_editor_remember(struct xm_line_editor *e, const char *text);

#endif
