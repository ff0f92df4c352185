/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole file mapped for reading. The bytes are never copied; pages come and go with
 * use. A page that cannot be read any more, since another process has shortened the file or its
 * disk fails, is a SIGBUS in whichever thread looks at it. It cannot be guarded against; a program
 * can have it said (xm_mapped_file_watch).
 */
#ifndef XM_RUNTIME_UTIL_MAPPED_FILE_H
#define XM_RUNTIME_UTIL_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mapped_file {
    const uint8_t *bytes; /* never NULL while open, not even for an empty file */
    uint64_t n_bytes;
    int64_t mtime_ns; /* when it was mapped: nanoseconds of the clock of files */
};

/* XM_NOT_FOUND when there is no such file. */
enum xm_status xm_mapped_file_open(const char *path, struct xm_mapped_file *out,
                                   struct xm_error *err);
/* Closing twice, or a zeroed struct, is allowed. */
void xm_mapped_file_close(struct xm_mapped_file *f);

/* Gives back the memory of the whole pages in these bytes, if they lie in the file; they are
 * read from it again when somebody looks. */
void xm_mapped_file_forget(const struct xm_mapped_file *f, const void *bytes, uint64_t n);

/* The file whose mapping an address lies in: the end of its path where that is long, and its bytes
 * when it was mapped. Async-signal-safe. False also where so many files were mapped already (64)
 * that this one is not in the table. */
bool xm_mapped_file_find(const void *address, const char **path, uint64_t *n_bytes);

/* Whether this process has had the file mapped as it is, be it closed since: of the first 256. */
struct stat;
bool xm_mapped_file_was_read(const struct stat *st);

/* Takes over SIGBUS of the process: a page of a mapped file that cannot be read calls `lost`, which
 * may do only what is allowed in a handler, in the thread that looked at it, perhaps in several
 * at once, and should end the process. When it returns, and for every other SIGBUS, what was done
 * about the signal before happens. A second call only replaces `lost`. */
typedef void (*xm_lost_file_fn)(const char *path, uint64_t n_bytes);
enum xm_status xm_mapped_file_watch(xm_lost_file_fn lost, struct xm_error *err);

/* Around calls of a driver, whose compiler may have a handler of its own: LLVM's comes before the
 * one above, is taken away by the first signal, and a second thread that looks at the lost file
 * meanwhile ends the process without a word. What the first tells goes to the second, which puts
 * the handler back if the driver has replaced it; one that the program has installed stays. */
bool xm_mapped_file_is_watched(void);
void xm_mapped_file_keep_watch(bool was_watched);

#ifdef __cplusplus
}
#endif
#endif
