/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/line_input.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/memory.h"

static const char first_prompt[] = "> ", next_prompt[] = ". ";
static const char usual[] = XM_STYLE_USUAL;

struct xm_line_input {
    bool interactive;
    int fd;                        /* xm_terminal_open_input          */
    struct xm_line_editor *editor; /* owned; NULL: lines are not edited */
    char bytes[4096];              /* read but not yet used */
    size_t at, n;
};

enum xm_status
xm_line_input_create(bool interactive, bool remembers, struct xm_line_input **out,
                     struct xm_error *err)
{
    struct xm_line_input *in = xm_calloc(1, sizeof(*in));
    if (!in)
        return xm_no_memory(err, "the input");
    in->interactive = interactive;
    in->fd = xm_terminal_open_input();
    if (interactive)
        in->editor = xm_line_editor_create(in->fd, remembers);
    *out = in;
    return XM_OK;
}

void
xm_line_input_free(struct xm_line_input *in)
{
    if (!in)
        return;
    xm_line_editor_free(in->editor);
    xm_terminal_close_input(in->fd);
    xm_free(in);
}

/* ---- lines without editing ----------------------------------------------------------------- */

/* Waits for bytes. XM_LINE_TEXT: `bytes` has some. */
static enum xm_line
fill(struct xm_line_input *in, struct xm_error *err)
{
    struct pollfd fds[] = {{in->fd, POLLIN, 0}, {xm_cli_wake_fd(), POLLIN, 0}};
    for (;;) {
        poll(fds, XM_ARRAY_LEN(fds), -1);
        xm_cli_wake_drain();
        if (xm_cli_interrupted())
            return XM_LINE_INTERRUPTED;
        if (!fds[0].revents)
            continue;
        ssize_t n = read(in->fd, in->bytes, sizeof(in->bytes));
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            xm_fail(err, XM_IO, "standard input: %s", strerror(errno));
        in->at = 0;
        in->n = n > 0 ? (size_t)n : 0;
        return n < 0 ? XM_LINE_FAILED : n == 0 ? XM_LINE_END : XM_LINE_TEXT;
    }
}

static enum xm_line
read_plain(struct xm_line_input *in, struct xm_strbuf *line, struct xm_error *err)
{
    for (;;) {
        if (in->at == in->n) {
            enum xm_line got = fill(in, err);
            if (in->interactive && got != XM_LINE_TEXT)
                fputc('\n', stderr); /* after the prompt, or "^C" */
            if (got == XM_LINE_END && line->n)
                break; /* the last line without a newline */
            if (got != XM_LINE_TEXT)
                return got;
        }
        const char *from = in->bytes + in->at;
        const char *end = memchr(from, '\n', in->n - in->at);
        size_t n = end ? (size_t)(end - from) : in->n - in->at;
        xm_strbuf_add_n(line, from, n);
        in->at += n + (end != NULL);
        if (end)
            break;
        if (line->n > (size_t)XM_LINE_MOST_MIB << 20) {
            xm_fail(err, XM_INVALID, "standard input: a line can have at most %d MiB",
                    XM_LINE_MOST_MIB);
            return XM_LINE_FAILED;
        }
    }
    if (line->n > 0 && line->text[line->n - 1] == '\r')
        line->text[--line->n] = '\0';
    return XM_LINE_TEXT;
}

/* Writes a colour code: typed text is green if the terminal supports colours. */
static void
colour(const struct xm_line_input *in, const char *code, const char *prompt)
{
    const bool styles = in->interactive && xm_terminal_has_styles(STDERR_FILENO);
    if (styles)
        xm_cli_farewell(STDERR_FILENO, code == usual ? NULL : usual);
    if (in->interactive)
        fprintf(stderr, "%s%s", styles ? code : "", prompt);
    fflush(stderr);
}

static enum xm_line
read_coloured(struct xm_line_input *in, const char *prompt, struct xm_strbuf *line,
              struct xm_error *err)
{
    colour(in, XM_STYLE_GREEN, prompt);
    const enum xm_line got = read_plain(in, line, err);
    colour(in, usual, "");
    return got;
}
/* ---- messages ---------------------------------------------------------------------- */

static enum xm_line
read_line(struct xm_line_input *in, const char *prompt, struct xm_strbuf *line,
          struct xm_error *err)
{
    xm_strbuf_clear(line);
    enum xm_line got = in->editor ? xm_line_editor_read(in->editor, prompt, line, err)
                                  : read_coloured(in, prompt, line, err);
    if (got == XM_LINE_TEXT && !xm_strbuf_ok(line)) {
        xm_no_memory(err, "a line");
        return XM_LINE_FAILED;
    }
    return got;
}

static enum xm_line
read_lines(struct xm_line_input *in, struct xm_strbuf *line, struct xm_strbuf *out,
           struct xm_error *err)
{
    enum xm_line got;
    bool more = true;
    for (const char *prompt = first_prompt; more; prompt = next_prompt) {
        got = read_line(in, prompt, line, err);
        if (got == XM_LINE_END && out->n)
            return XM_LINE_TEXT;
        more = got == XM_LINE_TEXT && line->n > 0 && line->text[line->n - 1] == '\\';
        xm_strbuf_add_n(out, xm_strbuf_text(line), line->n - more);
        if (more)
            xm_strbuf_add(out, "\n");
        if (got == XM_LINE_TEXT && out->n > (size_t)XM_LINE_MOST_MIB << 20) {
            xm_fail(err, XM_INVALID, "a message can have at most %d MiB",
                    XM_LINE_MOST_MIB);
            return XM_LINE_FAILED;
        }
    }
    return got;
}

enum xm_line
xm_line_input_read(struct xm_line_input *in, struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_strbuf line = {0};
    xm_strbuf_clear(out);
    enum xm_line got = read_lines(in, &line, out, err);
    xm_strbuf_free(&line);
    if (got == XM_LINE_TEXT && in->editor && out->n)
        xm_line_editor_remember(in->editor, xm_strbuf_text(out));
    if (got == XM_LINE_TEXT && !xm_strbuf_ok(out)) {
        xm_no_memory(err, "a message");
        return XM_LINE_FAILED;
    }
    return got;
}
