/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/mapped_file.h"
#include "runtime/util/memory.h"
#include "runtime/util/unfinished.h"

static atomic_bool spares_inputs;

void
xm_new_file_spare_inputs(bool spare)
{
    atomic_store(&spares_inputs, spare);
}

/* Whether a path is replaced by a new file: a regular file or a new name. Paths below /dev and
 * /proc may be links to open files (/dev/stdout) and are opened directly; so is a symbolic link
 * whose target does not exist. */
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

/* longest part of NAME that fits into a file name with .PID.N */
enum { MOST_OF_NAME = NAME_MAX - 40 };

static const char *
last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns "folder/name.PID.N" for "folder/name". */
static char *
name_beside(const char *place)
{
    static atomic_uint serial; /* threads of one process must not share a name */
    const char *name = last_name(place);
    struct xm_strbuf text = {0};
    xm_strbuf_add_n(&text, place, (size_t)(name - place));
    xm_strbuf_printf(&text, "%.*s.%ld.%u", MOST_OF_NAME, name, (long)getpid(),
                     atomic_fetch_add(&serial, 1));
    return xm_strbuf_take(&text);
}

/* ---- what ended processes have left -------------------------------------------------- */

/* The PID in an ending ".PID.N"; 0: another ending. */
static pid_t
pid_of_ending(const char *ending)
{
    char *end;
    const long pid = ending[0] == '.' ? strtol(ending + 1, &end, 10) : 0;
    if (pid <= 0 || pid > INT_MAX || *end != '.')
        return 0;
    const char *serial = end + 1;
    return serial[0] && serial[strspn(serial, "0123456789")] == '\0' ? (pid_t)pid : 0;
}

bool
xm_new_file_is_beside(const char *name)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        if (dot > name && pid_of_ending(dot))
            return true;
    }
    return false;
}

/* Whether `found` is NAME.PID.N with the PID of a process that has ended. */
static bool
is_of_gone_process(const char *found, const char *name)
{
    const size_t n = strnlen(name, MOST_OF_NAME);
    const pid_t pid = strncmp(found, name, n) == 0 ? pid_of_ending(found + n) : 0;
    return pid && kill(pid, 0) != 0 && errno == ESRCH;
}

/* Removes a temporary file unless it is locked. The PID of a process in another container, or on
 * another computer that shares the folder, is unknown here, but that process holds a lock on its
 * file. */
static void
remove_unlocked(int folder, const char *name)
{
    const int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

/* Opens the folder of a file; NULL: it cannot be read. */
static DIR *
open_folder_of(const char *place)
{
    const char *name = last_name(place);
    char folder[PATH_MAX];
    const int n = snprintf(folder, sizeof(folder), "%.*s.", (int)(name - place), place);
    return n > 0 && (size_t)n < sizeof(folder) ? opendir(folder) : NULL;
}

static void
remove_left_over(const char *place)
{
    const char *name = last_name(place);
    DIR *d = open_folder_of(place);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (is_of_gone_process(e->d_name, name))
            remove_unlocked(dirfd(d), e->d_name);
    }
    if (d)
        closedir(d);
}

static bool
is_locked(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool locked =
        fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return locked;
}

bool
xm_new_file_has_writer(const char *path)
{
    char real[PATH_MAX];
    const char *place = realpath(path, real) ? real : path, *name = last_name(place);
    const size_t n = strnlen(name, MOST_OF_NAME);
    DIR *d = open_folder_of(place);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = strncmp(e->d_name, name, n) == 0 && pid_of_ending(e->d_name + n) &&
                is_locked(dirfd(d), e->d_name);
    if (d)
        closedir(d);
    return found;
}

/* ---- beginning ------------------------------------------------------------------------ */

/* Creates the temporary file with the owner and mode of the file that it will replace, and locks it
 * until the end. File systems without locks are used without. */
static bool
make_beside(struct xm_new_file *f, const struct stat *old)
{
    const mode_t mode = old ? 0600 : 0666;
    xm_unfinished_add(f->beside);
    const int fd = open(f->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    flock(fd, LOCK_EX | LOCK_NB);
    f->lock = fd;
    f->is_locked = true;
    const bool is_owned = !old ||
                          (old->st_uid == geteuid() && old->st_gid == getegid()) ||
                          fchown(fd, old->st_uid, old->st_gid) == 0;
    if (!old || fchmod(fd, old->st_mode & (is_owned ? 07777 : 0777)) == 0)
        return true;
    unlink(f->beside);
    return false;
}

static void
drop_names(struct xm_new_file *f)
{
    if (f->beside)
        xm_unfinished_drop(f->beside);
    if (f->is_locked)
        close(f->lock);
    xm_free(f->place);
    xm_free(f->beside);
    f->place = f->beside = NULL;
    f->is_locked = false;
}

/* Begins a file. The target of a symbolic link is replaced, not the link. A file that the user may
 * not write is not replaced, either. If the folder permits no new file, the old file is written in
 * place. */
static enum xm_status
begin_beside(struct xm_new_file *f, struct xm_error *err)
{
    char real[PATH_MAX];
    struct stat old;
    const bool is_there = realpath(f->path, real) && stat(real, &old) == 0;
    if (is_there && access(real, W_OK) != 0)
        return xm_new_file_fail(f, err);
    if (is_there && atomic_load(&spares_inputs) && xm_mapped_file_was_read(&old))
        return xm_fail(err, XM_IO,
                       "'%.300s' is not written, because this program reads it: choose "
                       "another output file",
                       f->path);
    f->place = xm_strdup(is_there ? real : f->path);
    f->beside = f->place ? name_beside(f->place) : NULL;
    if (!f->beside) {
        drop_names(f);
        return xm_no_memory(err, "the name of a file");
    }
    remove_left_over(f->place);
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
        return xm_no_memory(err, "the text of '%.300s'", f->path);
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
