/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/lines.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "plugin/program_util/terminal.h"

enum { LEAST = 24, INDENT = 2 }; /* columns */

struct xm_lines
xm_lines_to(FILE *to)
{
    return (struct xm_lines){.to = to, .columns = xm_terminal_line(fileno(to))};
}

/* ---- wrapping ------------------------------------------------------------------------------ */

/* Whether a table column begins at this byte: two spaces precede it. */
static bool
begins_column(const char *line, size_t at)
{
    return at >= 2 && line[at] != ' ' && line[at - 1] == ' ' && line[at - 2] == ' ';
}

/* Returns the column at which continuation lines begin. */
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

/* Returns the bytes of the first part of a text that is wider than `columns`, up to the first
 * character of the next part. Does not break at a table column within `indent`, because the next
 * part would begin there as well. */
static size_t
break_at(const char *text, size_t n, size_t indent, size_t columns)
{
    const size_t most = xm_terminal_fit(text, n, columns);
    const size_t behind = most + strspn(text + most, " ");
    size_t word = 0;
    const size_t end = without_spaces(text, most);
    if (behind > most && behind - end > 1 && xm_terminal_width(text, end) > indent)
        return behind; /* only the spaces between two table columns exceed the width */
    for (size_t at = behind - end == 1 ? behind : most; at > 0; at--) {
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

/* ---- sentences ------------------------------------------------------------------------- */

/* Wraps each line of a text at `columns`. */
static void
wrap_lines(const char *text, size_t columns, struct xm_strbuf *out)
{
    for (size_t n;; text += n + 1) {
        n = strcspn(text, "\n");
        xm_lines_wrap(text, n, columns, out);
        if (text[n] == '\0')
            return;
        xm_strbuf_add(out, "\n");
    }
}

/* Written with one call, because several threads may print; unwrapped if memory is missing. */
void
xm_say_v(const char *format, va_list arguments)
{
    static const char prefix[] = "xemoe: ";
    const size_t columns = xm_terminal_line(STDERR_FILENO);
    struct xm_strbuf broken = {0};
    char text[4096];
    memcpy(text, prefix, sizeof(prefix));
    vsnprintf(text + sizeof(prefix) - 1, sizeof(text) - sizeof(prefix) + 1, format,
              arguments);
    if (columns != SIZE_MAX)
        wrap_lines(text, columns, &broken);
    fprintf(stderr, "%s\n", broken.n && xm_strbuf_ok(&broken) ? broken.text : text);
    xm_strbuf_free(&broken);
}

void
xm_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    xm_say_v(format, arguments);
    va_end(arguments);
}

/* ---- tables ---------------------------------------------------------------------------- */

enum { GAP = 1 };

static size_t
width_of(const struct xm_table_column *c)
{
    return (size_t)(c->width < 0 ? -c->width : c->width);
}

/* Whether the columns of the table are wider than the terminal. Cells of the last column may be
 * wider than the column. */
static bool
is_narrow(const struct xm_lines *o, const struct xm_table *t)
{
    size_t width = 0;
    for (size_t i = 0; i < t->n; i++)
        width += (i ? GAP : 0) + width_of(&t->columns[i]);
    return width > o->columns;
}

static void
add_cells(struct xm_lines *o, const struct xm_table *t, const char *const *cells)
{
    struct xm_strbuf line = {0};
    for (size_t i = 0; i < t->n; i++) {
        const struct xm_table_column *c = &t->columns[i];
        const char *cell = cells ? cells[i] : c->title;
        const size_t n = xm_terminal_width(cell, strlen(cell));
        const int blank = n < width_of(c) ? (int)(width_of(c) - n) : 0;
        xm_strbuf_printf(&line, "%*s%s%*s", (i ? GAP : 0) + (c->width < 0 ? 0 : blank),
                         "", cell, c->width < 0 ? blank : 0, "");
    }
    xm_lines_add(o, "%.*s\n", (int)without_spaces(xm_strbuf_text(&line), line.n),
                 xm_strbuf_text(&line));
    xm_strbuf_free(&line);
}

void
xm_table_head(struct xm_lines *o, const struct xm_table *t)
{
    if (!is_narrow(o, t))
        add_cells(o, t, NULL);
}

void
xm_table_row(struct xm_lines *o, const struct xm_table *t, const char *const *cells)
{
    const char *between = "";
    if (!is_narrow(o, t)) {
        add_cells(o, t, cells);
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        const char *title = t->columns[i].title;
        if (!cells[i][0])
            continue;
        xm_lines_add(o, "%s%s%s%s", between, title, title[0] ? " " : "", cells[i]);
        between = ", ";
    }
    xm_lines_add(o, "\n");
}
