/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel_source.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/util/log.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"

enum { MAX_INCLUDES = 96, MAX_NAME = 128, MAX_DEPTH = 12 };

struct source {
    const struct xm_kernel_file *files;
    size_t n_files;
    const char *dir; /* XM_KERNEL_DIR or NULL */
    char seen[MAX_INCLUDES][MAX_NAME];
    size_t n_seen;
    struct xm_strbuf *out;
    struct xm_error *err;
};

/* Reads dir/name; false when there is no such file. */
static bool
read_override(const char *dir, const char *name, struct xm_strbuf *text)
{
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s/%s", dir, name);
    struct xm_mapped_file file = {0};
    const bool found = xm_strbuf_ok(&path) &&
                       xm_mapped_file_open(xm_strbuf_text(&path), &file, NULL) == XM_OK;
    xm_strbuf_free(&path);
    if (found)
        xm_strbuf_add_n(text, (const char *)file.bytes, (size_t)file.n_bytes);
    xm_mapped_file_close(&file);
    return found;
}

static const char *
find_text(const struct source *s, const char *name, struct xm_strbuf *override)
{
    if (s->dir && read_override(s->dir, name, override))
        return xm_strbuf_text(override);
    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].name, name) == 0)
            return s->files[i].text;
    return NULL;
}

/* Sets `name` to "include/" and the name in quotes of an #include line; false: another line. */
static bool
parse_include(const char *line, size_t n, char name[MAX_NAME])
{
    static const char word[] = "#include \"";
    const size_t skip = sizeof(word) - 1;
    if (n <= skip || memcmp(line, word, skip) != 0)
        return false;
    const char *quote = memchr(line + skip, '"', n - skip);
    if (!quote)
        return false;
    int got = snprintf(name, MAX_NAME, "include/%.*s", (int)(quote - line - (long)skip),
                       line + skip);
    return got > 0 && got < MAX_NAME;
}

static bool
was_seen(struct source *s, const char *name)
{
    for (size_t i = 0; i < s->n_seen; i++)
        if (strcmp(s->seen[i], name) == 0)
            return true;
    return false;
}

static enum xm_status add_file(struct source *s, const char *name, const char *from,
                               int depth);

/* Adds every file whose name matches `pattern`, which contains one star. */
static enum xm_status
add_files(struct source *s, const char *pattern, const char *star, int depth)
{
    const size_t before = (size_t)(star - pattern), after = strlen(star + 1);
    for (size_t i = 0; i < s->n_files; i++) {
        const char *name = s->files[i].name;
        const size_t n = strlen(name);
        if (n >= before + after && memcmp(name, pattern, before) == 0 &&
            strcmp(name + n - after, star + 1) == 0)
            XM_TRY(add_file(s, name, pattern, depth));
    }
    return XM_OK;
}

static enum xm_status
add_file(struct source *s, const char *name, const char *from, int depth)
{
    const char *star = strchr(name, '*');
    if (was_seen(s, name))
        return XM_OK;
    if (star)
        return add_files(s, name, star, depth);
    if (s->n_seen == MAX_INCLUDES || depth == MAX_DEPTH)
        return xm_fail(s->err, XM_INVALID,
                       "kernel source '%s' has more than %d includes, or includes nested "
                       "deeper than %d",
                       from, MAX_INCLUDES, MAX_DEPTH);
    snprintf(s->seen[s->n_seen++], MAX_NAME, "%s", name);

    struct xm_strbuf override = {0};
    const char *text = find_text(s, name, &override);
    enum xm_status status = XM_OK;
    if (!text)
        status = xm_fail(s->err, XM_NOT_FOUND,
                         "there is no kernel source '%s', which '%s' needs", name, from);
    unsigned line_number = 1;
    xm_strbuf_printf(s->out, "#line 1 \"%s\"\n", name);
    for (const char *line = text; status == XM_OK && line && *line; line_number++) {
        const char *end = strchr(line, '\n');
        size_t n = end ? (size_t)(end - line) : strlen(line);
        char include[MAX_NAME];
        if (parse_include(line, n, include)) {
            status = add_file(s, include, name, depth + 1);
            xm_strbuf_printf(s->out, "#line %u \"%s\"\n", line_number + 1, name);
        } else {
            xm_strbuf_add_n(s->out, line, n);
            xm_strbuf_add(s->out, "\n");
        }
        line = end ? end + 1 : line + n;
    }
    if (status == XM_OK && (!xm_strbuf_ok(s->out) || !xm_strbuf_ok(&override)))
        status = xm_no_memory(s->err, "kernel source '%s'", name);
    xm_strbuf_free(&override);
    return status;
}

static enum xm_status
add_kernel(struct source *s, const char *name)
{
    char file[MAX_NAME];
    int n = snprintf(file, sizeof(file), "%s.cl", name);
    if (n < 0 || (size_t)n >= sizeof(file))
        return xm_fail(s->err, XM_INVALID, "the kernel name '%s' is too long", name);
    return add_file(s, file, name, 0);
}

/* Begins with the embedded files; files in XM_KERNEL_DIR replace them. */
static enum xm_status
begin(struct source *s, struct xm_strbuf *out, struct xm_error *err)
{
    *s = (struct source){.files = xm_kernel_files,
                         .n_files = xm_n_kernel_files,
                         .dir = xm_env("XM_KERNEL_DIR"),
                         .out = out,
                         .err = err};
    struct stat st;
    if (s->dir && (stat(s->dir, &st) != 0 || !S_ISDIR(st.st_mode)))
        return xm_fail(err, XM_INVALID, "XM_KERNEL_DIR: there is no folder '%s'", s->dir);
    return XM_OK;
}

enum xm_status
xm_kernel_source(const char *name, struct xm_strbuf *out, struct xm_error *err)
{
    struct source s;
    XM_TRY(begin(&s, out, err));
    return add_kernel(&s, name);
}

enum xm_status
xm_kernel_include(const char *name, struct xm_strbuf *out, struct xm_error *err)
{
    char file[MAX_NAME];
    struct source s;
    XM_TRY(begin(&s, out, err));
    snprintf(file, sizeof(file), "include/%s", name);
    return add_file(&s, file, file, 0);
}

enum xm_status
xm_kernel_source_from(const struct xm_kernel_file *files, size_t n_files,
                      const char *name, struct xm_strbuf *out, struct xm_error *err)
{
    struct source s = {.files = files, .n_files = n_files, .out = out, .err = err};
    return add_kernel(&s, name);
}
