/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces line_editor.c in builds without libedit.
 */
#include "plugin/program_util/line_editor.h"

struct xm_line_editor *
xm_line_editor_create(int fd, bool remembers)
{
    (void)fd;
    (void)remembers;
    return NULL;
}

void
xm_line_editor_free(struct xm_line_editor *e)
{
    (void)e;
}

enum xm_line
xm_line_editor_read(struct xm_line_editor *e, const char *prompt, struct xm_strbuf *line,
                    struct xm_error *err)
{
    (void)e;
    (void)prompt;
    (void)line;
    (void)err;
    return XM_LINE_END;
}

void
xm_line_editor_remember(struct xm_line_editor *e, const char *text)
{
    (void)e;
    (void)text;
}
