/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/prompt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/job.h"
#include "plugin/program_util/lines.h"
#include "runtime/util/json.h"

enum xm_status
xm_file_read_all(int fd, const char *name, const char *what, uint32_t most_mib,
                 struct xm_strbuf *out, struct xm_error *err)
{
    char part[1 << 14];
    const size_t most = (size_t)most_mib << 20;
    for (;;) {
        ssize_t n = read(fd, part, sizeof(part));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return xm_fail(err, XM_IO, "%s: %s", name, strerror(errno));
        if (n == 0)
            break;
        xm_strbuf_add_n(out, part, (size_t)n);
        if (out->n > most)
            return xm_fail(err, XM_INVALID, "%s: %s can have at most %u MiB", name, what,
                           most_mib);
    }
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "%s", what);
}

static void
drop_newline(struct xm_strbuf *text)
{
    if (text->n == 0 || text->text[text->n - 1] != '\n')
        return;
    text->text[--text->n] = '\0';
    if (text->n > 0 && text->text[text->n - 1] == '\r')
        text->text[--text->n] = '\0';
}

/* Removes the byte order mark that some Windows editors put before UTF-8 text. */
static void
drop_mark(struct xm_strbuf *text)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    if (text->n < sizeof(mark) || memcmp(text->text, mark, sizeof(mark)) != 0)
        return;
    text->n -= sizeof(mark);
    memmove(text->text, text->text + sizeof(mark), text->n + 1); /* including the NUL */
}

enum xm_status
xm_file_read(const char *path, const char *what, uint32_t most_mib, struct xm_strbuf *out,
             struct xm_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return xm_fail(err, errno == ENOENT ? XM_NOT_FOUND : XM_IO, "%s: %s", path,
                       strerror(errno));
    const enum xm_status s = xm_file_read_all(fd, path, what, most_mib, out, err);
    close(fd);
    return s;
}

const char *
xm_prompt_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Reads standard input. In an MPI job all processes get the input of the first. */
static enum xm_status
read_input(struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    enum xm_status s = XM_OK;
    if (xm_mpi_job_is_first())
        s = xm_file_read_all(STDIN_FILENO, xm_prompt_file_name("-"), "a prompt",
                             XM_PROMPT_MOST_MIB, &text, err);
    s = xm_mpi_job_share(s, &text, err);
    xm_strbuf_add_n(out, xm_strbuf_text(&text), s == XM_OK ? text.n : 0);
    xm_strbuf_free(&text);
    return s == XM_OK && !xm_strbuf_ok(out) ? xm_no_memory(err, "a prompt") : s;
}

enum xm_status
xm_prompt_file_read(const char *path, struct xm_strbuf *out, struct xm_error *err)
{
    const enum xm_status s =
        strcmp(path, "-") == 0
            ? read_input(out, err)
            : xm_file_read(path, "a prompt", XM_PROMPT_MOST_MIB, out, err);
    if (s == XM_OK) {
        drop_mark(out);
        drop_newline(out);
    }
    return s;
}

/* ---- prompts in lines -------------------------------------------------------------- */

static enum xm_status
add_line(struct xm_prompt_lines *lines, const char *text, size_t n, size_t number,
         struct xm_error *err)
{
    struct xm_prompt_line line = {.number = number};
    struct xm_prompt_line *list =
        xm_grow(lines->list, &lines->capacity, lines->n + 1, sizeof(*list));
    if (list)
        lines->list = list;
    xm_strbuf_add_n(&line.text, text, n);
    if (!list || !xm_strbuf_ok(&line.text)) {
        xm_strbuf_free(&line.text);
        return xm_no_memory(err, "prompts");
    }
    list[lines->n++] = line;
    return XM_OK;
}

enum xm_status
xm_prompt_lines_add(struct xm_prompt_lines *lines, const char *text, size_t n,
                    struct xm_error *err)
{
    return add_line(lines, text, n, 0, err);
}

static size_t
skip_blanks(const char *line, size_t n, size_t at)
{
    while (at < n && (line[at] == ' ' || line[at] == '\t'))
        at++;
    return at;
}

/* Whether the quote at the line's beginning ends at its last non-blank character. Direct speech
 * continues after its quotes, and is plain text. */
static bool
is_in_quotes(const char *line, size_t n)
{
    size_t at = 1;
    while (at < n && line[at] != '"')
        at += 1 + (line[at] == '\\');
    return line[0] == '"' && skip_blanks(line, n, at + 1) == n;
}

static enum xm_status
add_json(struct xm_prompt_lines *lines, const char *text, size_t n, size_t number,
         struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    if (xm_json_parse(text, n, &doc, err) != XM_OK) {
        xm_error_prefix(err, "a line in quotes is a JSON string");
        return err->status;
    }
    yyjson_val *string = yyjson_doc_get_root(doc);
    enum xm_status s =
        add_line(lines, yyjson_get_str(string), yyjson_get_len(string), number, err);
    yyjson_doc_free(doc);
    return s;
}

/* Takes a line without its newline. */
static enum xm_status
take_line(struct xm_prompt_lines *lines, const char *line, size_t n, size_t number,
          struct xm_error *err)
{
    if (skip_blanks(line, n, 0) < n)
        return is_in_quotes(line, n) ? add_json(lines, line, n, number, err)
                                     : add_line(lines, line, n, number, err);
    if (lines->n_blank++ == 0)
        lines->first_blank = number;
    return XM_OK;
}

enum xm_status
xm_prompt_lines_split(const struct xm_strbuf *text, const char *name,
                      struct xm_prompt_lines *lines, struct xm_error *err)
{
    const char *at = xm_strbuf_text(text), *const end = at + text->n;
    lines->name = name;
    size_t number = 1;
    for (; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline + 1 : end;
        size_t n = (size_t)((newline ? newline : end) - at);
        n -= n > 0 && at[n - 1] == '\r';
        const enum xm_status s = take_line(lines, at, n, number, err);
        if (s != XM_OK) {
            xm_error_prefix(err, "%s, line %zu", name, number);
            return s;
        }
        at = next;
    }
    if (text->n &&
        /* xm_prompt_file_read has dropped the newline of an empty last line */
        end[-1] == '\n')
        return take_line(lines, end, 0, number, err);
    return XM_OK;
}

void
xm_prompt_lines_free(struct xm_prompt_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        xm_strbuf_free(&lines->list[i].text);
    xm_free(lines->list);
    *lines = (struct xm_prompt_lines){0};
}

void
xm_prompt_lines_say_blank(const struct xm_prompt_lines *lines)
{
    if (lines->n_blank)
        xm_say("%s: %zu blank line%s skipped, the first one is line %zu; to use spaces "
               "as a prompt, put the line in quotes",
               lines->name, lines->n_blank, lines->n_blank == 1 ? " is" : "s are",
               lines->first_blank);
}
