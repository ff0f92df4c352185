/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole file mapped for reading. The bytes are never copied; the system loads and drops pages.
 * A page that cannot be read, because another process truncated the file or the disk failed, raises
 * SIGBUS in the thread that reads it. That cannot be prevented; a program can report it
 * (xm_mapped_file_watch).
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
    int64_t mtime_ns; /* its modification time when it was mapped, since 1970 */
};

/* XM_NOT_FOUND when there is no such file. */
enum xm_status xm_mapped_file_open(const char *path, struct xm_mapped_file *out,
                                   struct xm_error *err);
/* Closing twice, or a zeroed struct, is allowed. */
void xm_mapped_file_close(struct xm_mapped_file *f);

/* Releases the memory of the whole pages in these bytes, if they lie in the file; the next access
 * reads them from the file again. */
void xm_mapped_file_forget(const struct xm_mapped_file *f, const void *bytes, uint64_t n);

/* The file whose mapping has an address: its path (the end of a long one), and its size in bytes
 * when it was mapped. Async-signal-safe. False: none; or the table (64 files) was full when this
 * file was mapped. */
bool xm_mapped_file_find(const void *address, const char **path, uint64_t *n_bytes);

/* Whether this process has mapped the file in its present state, also when it has been closed
 * since. Knows the first 256 files. */
struct stat;
bool xm_mapped_file_was_read(const struct stat *st);

/* Installs a handler of SIGBUS: a page of a mapped file that cannot be read calls `lost` in the
 * thread that read it, perhaps in several threads at once. `lost` must be async-signal-safe and
 * should end the process. When it returns, and for every other SIGBUS, the previous handler is
 * called. A second call only replaces `lost`. */
typedef void (*xm_lost_file_fn)(const char *path, uint64_t n_bytes);
enum xm_status xm_mapped_file_watch(xm_lost_file_fn lost, struct xm_error *err);

/* Call these before and after calls of a driver, and pass the first one's result to the second.
 * LLVM in a driver's compiler may replace the handler above by one that the first signal removes;
 * then a second thread that reads the lost file ends the process without a message. The second call
 * restores the handler if the driver replaced it; a handler of the program stays. */
bool xm_mapped_file_is_watched(void);
void xm_mapped_file_keep_watch(bool was_watched);

#ifdef __cplusplus
}
#endif
#endif
