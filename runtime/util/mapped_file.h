/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole file mapped for reading. The bytes are never copied; pages come and go with
 * use. A file that another process shortens while it is mapped cannot be guarded against
 * here.
 */
#ifndef XM_RUNTIME_UTIL_MAPPED_FILE_H
#define XM_RUNTIME_UTIL_MAPPED_FILE_H

#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mapped_file {
    const uint8_t *bytes; /* never NULL while open, not even for an empty file */
    uint64_t n_bytes;
};

/* XM_NOT_FOUND when there is no such file. */
enum xm_status xm_mapped_file_open(const char *path, struct xm_mapped_file *out,
                                   struct xm_error *err);
/* Closing twice, or a zeroed struct, is allowed. */
void xm_mapped_file_close(struct xm_mapped_file *f);

/* Gives back the memory of the whole pages in these bytes, if they lie in the file; they are
 * read from it again when somebody looks. */
void xm_mapped_file_forget(const struct xm_mapped_file *f, const void *bytes, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
