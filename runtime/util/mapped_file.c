/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1]; /* mmap refuses empty files */

/* ---- where files are mapped, for a handler ----------------------------------------- */

enum { MOST_FILES = 64, PATH_BYTES = 256 };
static const uintptr_t claimed = 1; /* marks a row that a thread is filling in */

/* The table of mapped files. A signal handler reads it without a lock: the row of the file that its
 * thread was reading does not change meanwhile. */
static struct {
    _Atomic(uintptr_t) from; /* 0: free */
    _Atomic(uint64_t) n_bytes;
    char path[PATH_BYTES];
} table[MOST_FILES];

static void
enter(const struct xm_mapped_file *f, const char *path)
{
    const size_t n = strlen(path), skip = n < PATH_BYTES ? 0 : n + 1 - PATH_BYTES;
    for (int i = 0; i < MOST_FILES; i++) {
        uintptr_t from = 0;
        if (!atomic_compare_exchange_strong(&table[i].from, &from, claimed))
            continue;
        table[i].n_bytes = f->n_bytes;
        memcpy(table[i].path, path + skip, n - skip + 1);
        table[i].from = (uintptr_t)f->bytes;
        return;
    }
}

static void
leave(const struct xm_mapped_file *f)
{
    for (int i = 0; i < MOST_FILES; i++) {
        uintptr_t from = (uintptr_t)f->bytes;
        atomic_compare_exchange_strong(&table[i].from, &from, 0);
    }
}

bool
xm_mapped_file_find(const void *address, const char **path, uint64_t *n_bytes)
{
    for (int i = 0; i < MOST_FILES; i++) {
        const uintptr_t from = table[i].from, at = (uintptr_t)address;
        if (from <= claimed || at < from || at - from >= table[i].n_bytes)
            continue;
        *path = table[i].path;
        *n_bytes = table[i].n_bytes;
        return true;
    }
    return false;
}

static _Atomic(xm_lost_file_fn) on_lost;
static struct sigaction before;

/* When the handler returns, the failed access is repeated and then meets the handler `before`. A
 * signal that somebody has sent must be raised again. */
static void
on_bus_error(int signal_number, siginfo_t *info, void *ctx)
{
    const char *path;
    uint64_t n_bytes;
    const bool was_sent = info->si_code <= 0, is_unaligned = info->si_code == BUS_ADRALN;
    (void)ctx;
    if (!was_sent && !is_unaligned && xm_mapped_file_find(info->si_addr, &path, &n_bytes))
        on_lost(path, n_bytes);
    sigaction(signal_number, &before, NULL);
    if (was_sent)
        raise(signal_number);
}

static int
handle_bus_errors(struct sigaction *replaced)
{
    struct sigaction action = {0};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = (int)SA_SIGINFO;
    return sigaction(SIGBUS, &action, replaced);
}

bool
xm_mapped_file_is_watched(void)
{
    struct sigaction now;
    return on_lost && sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_bus_error;
}

void
xm_mapped_file_keep_watch(bool was_watched)
{
    if (was_watched && !xm_mapped_file_is_watched())
        handle_bus_errors(NULL);
}

enum xm_status
xm_mapped_file_watch(xm_lost_file_fn lost, struct xm_error *err)
{
    if (atomic_exchange(&on_lost, lost))
        return XM_OK;
    if (handle_bus_errors(&before) == 0)
        return XM_OK;
    on_lost = NULL;
    return xm_fail(err, XM_IO, "SIGBUS cannot be handled: %s", strerror(errno));
}

/* ---- what has been read ------------------------------------------------------------- */

enum { MOST_READ = 256 };
static pthread_mutex_t read_lock = PTHREAD_MUTEX_INITIALIZER;
static struct identity {
    uint64_t device, inode;
    int64_t mtime_ns; /* inode numbers of deleted files are used again */
} has_read[MOST_READ];
static size_t n_read;

/* The caller holds read_lock. */
static bool
is_known(const struct identity *f)
{
    size_t i = 0;
    while (i < n_read &&
           (has_read[i].device != f->device || has_read[i].inode != f->inode ||
            has_read[i].mtime_ns != f->mtime_ns))
        i++;
    return i < n_read;
}

static void
note_read(const struct identity *f)
{
    pthread_mutex_lock(&read_lock);
    if (n_read < MOST_READ && !is_known(f))
        has_read[n_read++] = *f;
    pthread_mutex_unlock(&read_lock);
}

static struct identity
identity_of(const struct stat *st)
{
    return (struct identity){st->st_dev, st->st_ino,
                             (int64_t)st->st_mtim.tv_sec * 1000000000 +
                                 st->st_mtim.tv_nsec};
}

bool
xm_mapped_file_was_read(const struct stat *st)
{
    const struct identity f = identity_of(st);
    pthread_mutex_lock(&read_lock);
    const bool was = is_known(&f);
    pthread_mutex_unlock(&read_lock);
    return was;
}

/* ---- files ------------------------------------------------------------------------- */

static enum xm_status
io_error(struct xm_error *err, const char *path, const char *verb)
{
    int code = errno;
    return xm_fail(err, code == ENOENT ? XM_NOT_FOUND : XM_IO, "cannot %s '%.300s': %s",
                   verb, path, strerror(code));
}

static enum xm_status
map(int fd, const char *path, struct xm_mapped_file *out, struct xm_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return io_error(err, path, "examine");
    if (!S_ISREG(st.st_mode))
        return xm_fail(err, XM_IO, "'%.300s' is not a regular file", path);
    if ((uint64_t)st.st_size > SIZE_MAX)
        return xm_fail(err, XM_NO_MEMORY, "'%.300s' is larger than the address space",
                       path);
    const struct identity identity = identity_of(&st);
    note_read(&identity);
    out->n_bytes = (uint64_t)st.st_size;
    out->mtime_ns = identity.mtime_ns;
    out->bytes = nothing;
    if (out->n_bytes == 0)
        return XM_OK;
    void *p = mmap(NULL, (size_t)out->n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        *out = (struct xm_mapped_file){0};
        return io_error(err, path, "map");
    }
    out->bytes = p;
    return XM_OK;
}

enum xm_status
xm_mapped_file_open(const char *path, struct xm_mapped_file *out, struct xm_error *err)
{
    *out = (struct xm_mapped_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0)
        return io_error(err, path, "open");
    enum xm_status status = map(fd, path, out, err);
    close(fd); /* the mapping stays */
    if (out->n_bytes)
        enter(out, path);
    return status;
}

void
xm_mapped_file_close(struct xm_mapped_file *f)
{
    if (f->n_bytes) {
        leave(f); /* before munmap: another file may be mapped at the same address */
        munmap((void *)f->bytes, (size_t)f->n_bytes);
    }
    *f = (struct xm_mapped_file){0};
}

void
xm_mapped_file_forget(const struct xm_mapped_file *f, const void *bytes, uint64_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)bytes;
    uintptr_t from = (uintptr_t)f->bytes;
    if (start < from || start - from > f->n_bytes || n > f->n_bytes - (start - from))
        return;
    uintptr_t first = (start + page - 1) / page * page, end = (start + n) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED);
}
