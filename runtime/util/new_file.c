/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/new_file.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/memory.h"

/* Links of the system's own stand for files that are open (/dev/stdout), others for files. */
static bool
is_regular_or_new(const char *path)
{
    struct stat st;
    const bool is_systems =
        strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    const int found = is_systems ? lstat(path, &st) : stat(path, &st);
    return found != 0 || S_ISREG(st.st_mode);
}

/* What a link leads to is replaced, not the link; and nothing that its owner may not write. */
static enum xm_status
begin_beside(struct xm_new_file *f, struct xm_error *err)
{
    static atomic_uint serial; /* threads of one process must not share a name */
    char real[PATH_MAX];
    struct xm_strbuf beside = {0};
    const bool is_there = realpath(f->path, real) != NULL;
    if (is_there && access(real, W_OK) != 0)
        return xm_new_file_fail(f, err);
    f->place = xm_strdup(is_there ? real : f->path);
    xm_strbuf_printf(&beside, "%s.%ld.%u", f->place ? f->place : "", (long)getpid(),
                     atomic_fetch_add(&serial, 1));
    f->beside = xm_strbuf_take(&beside);
    if (f->place && f->beside)
        return XM_OK;
    xm_new_file_end(f, XM_NO_MEMORY, NULL);
    return xm_fail(err, XM_NO_MEMORY, "out of memory for the name of a file");
}

enum xm_status
xm_new_file_begin(struct xm_new_file *f, const char *path, struct xm_error *err)
{
    *f = (struct xm_new_file){.path = path};
    return is_regular_or_new(path) ? begin_beside(f, err) : XM_OK;
}

const char *
xm_new_file_name(const struct xm_new_file *f)
{
    return f->beside ? f->beside : f->path;
}

enum xm_status
xm_new_file_fail(const struct xm_new_file *f, struct xm_error *err)
{
    return xm_fail(err, XM_IO, "'%.300s' cannot be written: %s", f->path,
                   strerror(errno));
}

enum xm_status
xm_new_file_write(const struct xm_new_file *f, const struct xm_strbuf *text,
                  struct xm_error *err)
{
    if (!xm_strbuf_ok(text))
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the text of '%.300s'",
                       f->path);
    FILE *out = fopen(xm_new_file_name(f), "wb");
    if (!out)
        return xm_new_file_fail(f, err);
    enum xm_status s = fwrite(xm_strbuf_text(text), 1, text->n, out) == text->n
                           ? XM_OK
                           : xm_new_file_fail(f, err);
    if (fclose(out) != 0 && s == XM_OK)
        s = xm_new_file_fail(f, err);
    return s;
}

enum xm_status
xm_new_file_end(struct xm_new_file *f, enum xm_status s, struct xm_error *err)
{
    if (s == XM_OK && f->beside && rename(f->beside, f->place) != 0)
        s = xm_new_file_fail(f, err);
    if (s != XM_OK && f->beside)
        unlink(f->beside);
    xm_free(f->place);
    xm_free(f->beside);
    *f = (struct xm_new_file){0};
    return s;
}

enum xm_status
xm_write_text_file(const char *path, const struct xm_strbuf *text, struct xm_error *err)
{
    struct xm_new_file f;
    XM_TRY(xm_new_file_begin(&f, path, err));
    return xm_new_file_end(&f, xm_new_file_write(&f, text, err), err);
}
