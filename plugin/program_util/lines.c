/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/lines.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "plugin/program_util/terminal.h"

enum { LEAST = 24, INDENT = 2 }; /* columns */

struct xm_lines
xm_lines_to(FILE *to)
{
    return (struct xm_lines){.to = to, .columns = xm_terminal_line(fileno(to))};
}

/* ---- breaking -------------------------------------------------------------------------- */

/* Whether a column of a table begins at this byte: two spaces are before it. */
static bool
begins_column(const char *line, size_t at)
{
    return at >= 2 && line[at] != ' ' && line[at - 1] == ' ' && line[at - 2] == ' ';
}

/* The column at which the further lines of a line begin. */
static size_t
indent_of(const char *line, size_t n, size_t columns)
{
    const size_t first = strspn(line, " ");
    size_t indent = first + INDENT;
    for (size_t at = first + 1; at < n; at++) {
        if (begins_column(line, at) && xm_terminal_width(line, at) + LEAST <= columns)
            indent = xm_terminal_width(line, at);
    }
    return indent + 1 < columns ? indent : 0;
}

static size_t
without_spaces(const char *text, size_t n)
{
    while (n > 0 && text[n - 1] == ' ')
        n--;
    return n;
}

/* Bytes of the first part of a text that is wider than `columns`, up to the character that the next
 * part begins with. A table's column within `indent` is no place to break: the next part would
 * begin there as well. */
static size_t
break_at(const char *text, size_t n, size_t indent, size_t columns)
{
    const size_t most = xm_terminal_fit(text, n, columns);
    const size_t behind = most + strspn(text + most, " ");
    size_t word = 0;
    if (behind > most && xm_terminal_width(text, without_spaces(text, most)) > indent)
        return behind; /* the spaces between two columns are what is too wide */
    for (size_t at = most; at > 0; at--) {
        const bool is_inside = xm_terminal_width(text, at) <= indent;
        if (!is_inside && begins_column(text, at))
            return at;
        if (!is_inside && word == 0 && text[at - 1] == ' ' && text[at] != ' ')
            word = at;
    }
    return word ? word : most ? most : n;
}

void
xm_lines_wrap(const char *line, size_t n, size_t columns, struct xm_strbuf *out)
{
    const size_t indent = indent_of(line, n, columns);
    size_t left = columns, inside = indent;
    while (xm_terminal_width(line, without_spaces(line, n)) > left) {
        const size_t at = break_at(line, n, inside, left);
        if (at >= n)
            break;
        xm_strbuf_add_n(out, line, without_spaces(line, at));
        xm_strbuf_printf(out, "\n%*s", (int)indent, "");
        line += at;
        n -= at;
        left = columns - indent;
        inside = 0;
    }
    xm_strbuf_add_n(out, line, n);
}

/* ---- printing -------------------------------------------------------------------------- */

static void
print_line(const struct xm_lines *o, const char *line, size_t n)
{
    struct xm_strbuf broken = {0};
    if (o->columns == SIZE_MAX) {
        fwrite(line, 1, n, o->to);
        return;
    }
    xm_lines_wrap(line, n, o->columns, &broken);
    fputs(xm_strbuf_text(&broken), o->to);
    xm_strbuf_free(&broken);
}

void
xm_lines_add(struct xm_lines *o, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    xm_strbuf_print_v(&o->line, format, arguments);
    va_end(arguments);
    const char *at = xm_strbuf_text(&o->line);
    for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
        print_line(o, at, (size_t)(end - at));
        putc('\n', o->to);
    }
    struct xm_strbuf rest = {0};
    xm_strbuf_add(&rest, at);
    xm_strbuf_free(&o->line);
    o->line = rest;
}

void
xm_lines_end(struct xm_lines *o)
{
    print_line(o, xm_strbuf_text(&o->line), o->line.n);
    xm_strbuf_free(&o->line);
}
