/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"

static atomic_bool spares_inputs;

void
xm_new_file_spare_inputs(bool spare)
{
    atomic_store(&spares_inputs, spare);
}

/* Links of the system's own stand for files that are open (/dev/stdout), others for files; one that
 * leads to nothing yet is left to the system. */
static bool
is_regular_or_new(const char *path)
{
    struct stat st;
    const bool is_systems =
        strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    if (is_systems || stat(path, &st) != 0)
        return lstat(path, &st) != 0 || S_ISREG(st.st_mode);
    return S_ISREG(st.st_mode);
}

/* "folder/name" -> "folder/name.PID.N", with as much of the name as a folder allows. */
static char *
name_beside(const char *place)
{
    enum { MOST_OF_NAME = NAME_MAX - 40 };
    static atomic_uint serial; /* threads of one process must not share a name */
    const char *slash = strrchr(place, '/'), *name = slash ? slash + 1 : place;
    struct xm_strbuf text = {0};
    xm_strbuf_add_n(&text, place, (size_t)(name - place));
    xm_strbuf_printf(&text, "%.*s.%ld.%u", MOST_OF_NAME, name, (long)getpid(),
                     atomic_fetch_add(&serial, 1));
    return xm_strbuf_take(&text);
}

/* It exists from here on, with the owner and the mode of the one that it will replace. */
static bool
make_beside(const struct xm_new_file *f, const struct stat *old)
{
    const mode_t mode = old ? 0600 : 0666;
    const int fd = open(f->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    const bool is_owned = !old ||
                          (old->st_uid == geteuid() && old->st_gid == getegid()) ||
                          fchown(fd, old->st_uid, old->st_gid) == 0;
    const bool good = !old || fchmod(fd, old->st_mode & (is_owned ? 07777 : 0777)) == 0;
    close(fd);
    return good;
}

static void
drop_names(struct xm_new_file *f)
{
    xm_free(f->place);
    xm_free(f->beside);
    f->place = f->beside = NULL;
}

/* What a link leads to is replaced, not the link; and nothing that its owner may not write. Where
 * the folder takes no new file, the old one is written as it is. */
static enum xm_status
begin_beside(struct xm_new_file *f, struct xm_error *err)
{
    char real[PATH_MAX];
    struct stat old;
    const bool is_there = realpath(f->path, real) && stat(real, &old) == 0;
    if (is_there && access(real, W_OK) != 0)
        return xm_new_file_fail(f, err);
    if (is_there && atomic_load(&spares_inputs) && xm_mapped_file_was_read(&old))
        return xm_fail(
            err, XM_IO,
            "'%.300s' is not written: this program has read it, and what it is "
            "would be lost",
            f->path);
    f->place = xm_strdup(is_there ? real : f->path);
    f->beside = f->place ? name_beside(f->place) : NULL;
    if (!f->beside) {
        drop_names(f);
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the name of a file");
    }
    if (make_beside(f, is_there ? &old : NULL))
        return XM_OK;
    const enum xm_status s = is_there && (errno == EACCES || errno == EPERM)
                                 ? XM_OK
                                 : xm_new_file_fail(f, err);
    drop_names(f);
    return s;
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
    FILE *out = fopen(xm_new_file_name(f), "wbe");
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
    drop_names(f);
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
