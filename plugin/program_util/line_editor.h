/* SPDX-License-Identifier: Apache-2.0
 *
 * Line editing with history on a terminal, by libedit. Without libedit at build time
 * xm_line_editor_create returns NULL.
 *
 * Input is UTF-8 in every locale: of the process's locale only LC_CTYPE is set, to a UTF-8 one. A
 * pasted block of lines is one text (bracketed paste). The history is stored for later
 * conversations (input_history.h), unless its file cannot be written, which is not reported.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_LINE_EDITOR_H
#define XM_PLUGIN_PROGRAM_UTIL_LINE_EDITOR_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_line {
    XM_LINE_TEXT, /* a message                                                      */
    XM_LINE_INTERRUPTED, /* Ctrl-C; `out` has the typed text, if it is known */
    XM_LINE_END,         /* the end of the input */
    XM_LINE_FAILED
};

struct xm_line_editor;

/* Creates an editor for the terminal input `fd` (xm_terminal_open_input), which the caller owns.
 * `remembers`: reads the history file and appends to it. NULL: this terminal or this build cannot
 * edit lines. */
struct xm_line_editor *xm_line_editor_create(int fd, bool remembers);
void xm_line_editor_free(struct xm_line_editor *e); /* NULL is allowed */
/* Reads one line or one pasted block and appends it to `line` without its newline. */
enum xm_line xm_line_editor_read(struct xm_line_editor *e, const char *prompt,
                                 struct xm_strbuf *line, struct xm_error *err);
/* Adds a message to the history. */
void xm_line_editor_remember(struct xm_line_editor *e, const char *text);

#ifdef __cplusplus
}
#endif
#endif
