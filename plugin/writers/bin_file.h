/* SPDX-License-Identifier: Apache-2.0
 *
 * A weights file being written. It is a growing mapping, so that bytes are written to the file
 * directly and constants of a graph can be views of it.
 *
 * Address space for `capacity` bytes is reserved at once; disk space is allocated piece by piece,
 * so that a full disk gives an error message and not a signal.
 */
#ifndef XM_PLUGIN_WRITERS_BIN_FILE_H
#define XM_PLUGIN_WRITERS_BIN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/new_file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_bin_file {
    int fd;
    uint8_t *base; /* the mapping; bytes [0, used) are content */
    uint64_t used, capacity;
    bool sparse; /* disk space is not allocated: unwritten parts are holes */
    const struct xm_new_file *at;
};

/* Creates the file. *at must live until the file is closed. */
enum xm_status xm_bin_file_create(struct xm_bin_file *f, const struct xm_new_file *at,
                                  uint64_t capacity, struct xm_error *err);
/* Appends n zero bytes at a multiple of `alignment` and returns their address. NULL: *err is
 * set. */
uint8_t *xm_bin_file_take(struct xm_bin_file *f, uint64_t n, uint64_t alignment,
                          struct xm_error *err);
/* Truncates the file to its content and closes it. */
enum xm_status xm_bin_file_close(struct xm_bin_file *f, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
