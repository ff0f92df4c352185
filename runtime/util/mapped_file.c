/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1]; /* mmap refuses empty files */

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
    out->n_bytes = (uint64_t)st.st_size;
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
    return status;
}

void
xm_mapped_file_close(struct xm_mapped_file *f)
{
    if (f->n_bytes)
        munmap((void *)f->bytes, (size_t)f->n_bytes);
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
