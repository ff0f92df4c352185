/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/writers/bin_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/util/memory.h"

static enum xm_status
fail(const struct xm_bin_file *f, const char *what, int error, struct xm_error *err)
{
    return xm_fail(err, XM_IO, "cannot %s '%.300s': %s", what, f->at->path,
                   strerror(error));
}

enum xm_status
xm_bin_file_create(struct xm_bin_file *f, const struct xm_new_file *at, uint64_t capacity,
                   struct xm_error *err)
{
    *f = (struct xm_bin_file){.fd = -1, .capacity = capacity, .at = at};
    f->fd = open(xm_new_file_name(at), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd < 0)
        return fail(f, "create", errno, err);
    void *base = MAP_FAILED;
    if (ftruncate(f->fd, (off_t)capacity) == 0)
        base = mmap(NULL, (size_t)capacity, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (base == MAP_FAILED) {
        int error = errno;
        close(f->fd);
        return fail(f, "map", error, err);
    }
    f->base = base;
    return XM_OK;
}

uint8_t *
xm_bin_file_take(struct xm_bin_file *f, uint64_t n, uint64_t alignment,
                 struct xm_error *err)
{
    uint64_t at = xm_align_up(f->used, alignment);
    if (n > f->capacity || at > f->capacity - n) {
        xm_fail(err, XM_INVALID,
                "'%s' would be larger than the %llu bytes planned for it", f->at->path,
                (unsigned long long)f->capacity);
        return NULL;
    }
    int error = n && !f->sparse ? posix_fallocate(f->fd, (off_t)at, (off_t)n) : 0;
    if (error) {
        fail(f, "write to", error, err);
        return NULL;
    }
    f->used = at + n;
    return f->base + at;
}

enum xm_status
xm_bin_file_close(struct xm_bin_file *f, struct xm_error *err)
{
    int error = 0;
    if (!f->base)
        return XM_OK;
    munmap(f->base, (size_t)f->capacity);
    if (ftruncate(f->fd, (off_t)f->used) != 0)
        error = errno;
    if (close(f->fd) != 0 && !error)
        error = errno;
    f->base = NULL;
    return error ? fail(f, "finish", error, err) : XM_OK;
}
