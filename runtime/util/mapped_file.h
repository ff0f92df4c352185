/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole file mapped to memory for reading. The bytes are not copied: the operating system loads
 * pages when they are read and drops them when memory is short. If a page cannot be read, because
 * another process truncated the file or the disk failed, the thread that reads it gets SIGBUS. That
 * cannot be prevented; xm_mapped_file_watch lets a program report it.
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
    int64_t mtime_ns; /* modification time when it was mapped, nanoseconds since 1970 */
};

/* Maps a file. XM_NOT_FOUND: there is no such file. */
enum xm_status xm_mapped_file_open(const char *path, struct xm_mapped_file *out,
                                   struct xm_error *err);
/* Unmaps it. Closing twice, or closing a zeroed struct, is allowed. */
void xm_mapped_file_close(struct xm_mapped_file *f);

/* Drops the pages that lie wholly in these n bytes from memory; the next access reads them from the
 * file again. Does nothing if the bytes are not in the file. */
void xm_mapped_file_forget(const struct xm_mapped_file *f, const void *bytes, uint64_t n);

/* Finds the mapped file that contains an address: *path is its path (the end of a long one),
 * *n_bytes its size when it was mapped. Async-signal-safe. False: the address is in no mapped file,
 * or the table (64 files) was full when the file was mapped. */
bool xm_mapped_file_find(const void *address, const char **path, uint64_t *n_bytes);

/* Whether this process has mapped this file in its present state (device, inode, modification
 * time), even if it has closed it since. Remembers only the first 256 files. */
struct stat;
bool xm_mapped_file_was_read(const struct stat *st);

/* Installs a handler of SIGBUS. When a thread reads a page of a mapped file that cannot be read, it
 * calls `lost` with the file in that thread, possibly in several threads at once. `lost` must be
 * async-signal-safe and should end the process. After it returns, and for any other SIGBUS, the
 * previous handler is in force. A second call only replaces `lost`. */
typedef void (*xm_lost_file_fn)(const char *path, uint64_t n_bytes);
enum xm_status xm_mapped_file_watch(xm_lost_file_fn lost, struct xm_error *err);

/* Protect that handler from drivers: call xm_mapped_file_is_watched before a call of a driver, and
 * pass its result to xm_mapped_file_keep_watch afterwards. LLVM in a driver's compiler may replace
 * the handler by one that the first signal removes; then a second thread that reads the lost file
 * would end the process without a message. keep_watch installs the handler again if another one is
 * there. If the program had no such handler before the call, nothing happens. */
bool xm_mapped_file_is_watched(void);
void xm_mapped_file_keep_watch(bool was_watched);

#ifdef __cplusplus
}
#endif
#endif
