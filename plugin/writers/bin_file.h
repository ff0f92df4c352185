/* SPDX-License-Identifier: Apache-2.0
 *
 * A weights file being written: a growing mapping, so that bytes go straight to the file and
 * constants of a graph can be views into it.
 *
 * Address space for `capacity` bytes is reserved at once; disk space is claimed piece by piece,
 * so that a full disk is an error with a sentence and not a signal.
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
    uint8_t *base; /* the mapping, [0, used) is content */
    uint64_t used, capacity;
    bool sparse; /* disk space is not claimed: what is never written is a hole */
    const struct xm_new_file *at;
};

/* `at` must live until it is closed. */
enum xm_status xm_bin_file_create(struct xm_bin_file *f, const struct xm_new_file *at,
                                  uint64_t capacity, struct xm_error *err);
/* `n` bytes at a multiple of `alignment`; zeroed; NULL with err set. */
uint8_t *xm_bin_file_take(struct xm_bin_file *f, uint64_t n, uint64_t alignment,
                          struct xm_error *err);
/* Cuts the file to its content and closes it. */
enum xm_status xm_bin_file_close(struct xm_bin_file *f, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
