/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/terminal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include "runtime/util/log.h"
#include "runtime/util/utf8.h"

bool
xm_terminal_is(int fd)
{
    return isatty(fd) == 1;
}

bool
xm_terminal_has_escapes(int fd)
{
    const char *term = xm_env("TERM");
    return term && strcmp(term, "dumb") != 0 && xm_terminal_is(fd);
}

bool
xm_terminal_has_styles(int fd)
{
    return !xm_env("NO_COLOR") && xm_terminal_has_escapes(fd);
}

int
xm_terminal_open_input(void)
{
    if (!xm_terminal_is(STDIN_FILENO))
        return STDIN_FILENO;
    const int fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 ? fd : STDIN_FILENO;
}

void
xm_terminal_close_input(int fd)
{
    if (fd != STDIN_FILENO)
        close(fd);
}

size_t
xm_terminal_columns(int fd)
{
    enum { USUAL = 80 };
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL;
}

size_t
xm_terminal_line(int fd)
{
    return xm_terminal_is(fd) ? xm_terminal_columns(fd) - 1 : SIZE_MAX;
}

size_t
xm_terminal_char_width(int32_t code)
{
    return code < 0 ? 1 : (size_t)utf8proc_charwidth(code);
}

/* Returns the bytes and columns of the first character of a text. */
static size_t
next(const char *text, size_t n, size_t *columns)
{
    int32_t code;
    const size_t bytes = xm_utf8_next(xm_slice_of(text, n), &code);
    *columns = xm_terminal_char_width(code);
    return bytes;
}

size_t
xm_terminal_fit(const char *text, size_t n, size_t columns)
{
    size_t at = 0, used = 0;
    while (at < n) {
        size_t width;
        const size_t bytes = next(text + at, n - at, &width);
        if (used + width > columns)
            break;
        used += width;
        at += bytes;
    }
    return at;
}

size_t
xm_terminal_width(const char *text, size_t n)
{
    size_t used = 0;
    for (size_t at = 0, width; at < n; used += width)
        at += next(text + at, n - at, &width);
    return used;
}

/* ---- paragraphs ---------------------------------------------------------------------- */

/* The column at which a line's description begins; without one, the number of leading spaces. */
static size_t
indent_of(const char *line, size_t n)
{
    enum { MOST = 30 };
    const size_t begin = strspn(line, " ");
    size_t indent = begin;
    for (size_t i = begin + 2; i < n && i <= MOST; i++) {
        if (line[i - 2] == ' ' && line[i - 1] == ' ' && line[i] != ' ')
            indent = i;
    }
    return indent;
}

/* Returns how many bytes of `line` to print first: up to a space after `from`; n if there is
 * none. */
static size_t
break_at(const char *line, size_t n, size_t from, size_t columns)
{
    size_t at = xm_terminal_fit(line, n, columns);
    while (at > from && line[at] != ' ')
        at--;
    return at > from ? at : n;
}

size_t
xm_terminal_first_line(const char *text, size_t n, size_t columns, size_t *skip)
{
    size_t at = n, width;
    if (xm_terminal_width(text, n) > columns) {
        at = break_at(text, n, 0, columns);
        if (xm_terminal_width(text, at) > columns)
            at = xm_terminal_fit(text, n, columns);
    }
    if (at == 0 && n)
        at = next(text, n, &width);
    *skip = at + (at < n && text[at] == ' ');
    return at;
}

void
xm_terminal_print_beside(FILE *to, const char *text, size_t used, size_t at,
                         size_t columns)
{
    enum { LEAST = 24, INDENT = 2 };
    const size_t n = strlen(text), width = xm_terminal_width(text, n);
    const bool is_beside =
        columns >= at && (columns - at >= LEAST || columns - at >= width);
    const size_t indent = is_beside ? at : INDENT;
    const size_t room = columns > indent ? columns - indent : 1;
    fprintf(to, is_beside ? "%*s" : "\n%*s", (int)(is_beside ? indent - used : indent),
            "");
    for (size_t done = 0, length, skip; done < n; done += skip) {
        length = xm_terminal_first_line(text + done, n - done, room, &skip);
        if (done)
            fprintf(to, "\n%*s", (int)indent, "");
        fprintf(to, "%.*s", (int)length, text + done);
    }
}

static void
wrap_line(const char *line, size_t n, size_t columns, struct xm_strbuf *out)
{
    const size_t indent = indent_of(line, n);
    size_t from = indent; /* text before the description is not wrapped */
    for (size_t left = columns; xm_terminal_width(line, n) > left;) {
        const size_t at = break_at(line, n, from, left);
        if (at == n)
            break;
        xm_strbuf_add_n(out, line, at);
        xm_strbuf_printf(out, "\n%*s", (int)indent, "");
        line += at + 1;
        n -= at + 1;
        from = 0;
        left = columns - indent;
    }
    xm_strbuf_add_n(out, line, n);
}

/* Whether the line is part of a paragraph: neither blank nor indented. */
static bool
is_prose(const char *line)
{
    return line[0] != '\0' && line[0] != '\n' && line[0] != ' ';
}

/* Appends a paragraph whose lines are joined and wrapped again, because they were wrapped for a
 * wider terminal. Returns the text after it. */
static const char *
wrap_paragraph(const char *text, size_t columns, struct xm_strbuf *out)
{
    struct xm_strbuf line = {0};
    size_t n;
    for (; is_prose(text); text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        xm_strbuf_add(&line, line.n ? " " : "");
        xm_strbuf_add_n(&line, text, n);
    }
    wrap_line(xm_strbuf_text(&line), line.n, columns, out);
    xm_strbuf_add(out, "\n");
    xm_strbuf_free(&line);
    return text;
}

void
xm_terminal_wrap(const char *text, size_t columns, struct xm_strbuf *out)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        const bool is_example = strncmp(text + strspn(text, " "), "example:", 8) == 0;
        const bool is_broken = !is_example && xm_terminal_width(text, n) > columns;
        if (is_broken && is_prose(text) && text[n] && is_prose(text + n + 1)) {
            text = wrap_paragraph(text, columns, out);
            continue;
        }
        wrap_line(text, n, is_example ? SIZE_MAX : columns, out);
        text += n;
        if (*text) {
            xm_strbuf_add(out, "\n");
            text++;
        }
    }
}

void
xm_terminal_print(FILE *to, const char *text)
{
    enum { LEAST = 40, MOST = 100 }; /* columns */
    const size_t wide = xm_terminal_columns(fileno(to));
    struct xm_strbuf lines = {0};
    xm_terminal_wrap(text, wide < LEAST ? LEAST : wide > MOST ? MOST : wide, &lines);
    fputs(xm_strbuf_text(&lines), to);
    xm_strbuf_free(&lines);
}
