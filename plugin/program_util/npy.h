/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npy files, little-endian and in C order. Reads token ids, rows of floats and tensors of
 * any type; writes float32.
 *
 *     "\x93NUMPY" | version 1.0 | u16 length | {'descr': '<f4', 'fortran_order': False,
 *     'shape': (3, 5), } padded with spaces to a multiple of 64, newline | data
 *
 * Not supported: Fortran order, big-endian and complex numbers, rank above 8.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_NPY_H
#define XM_PLUGIN_PROGRAM_UTIL_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/element.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The integers of a file with rank 1 (one row) or 2. */
struct xm_npy {
    uint64_t rows, cols;
    int64_t *data; /* rows x cols, owned */
};

bool xm_npy_is(const void *bytes, uint64_t n); /* whether it begins like an .npy file */
/* Reads integers from a file's content (n bytes). XM_INVALID, XM_UNSUPPORTED: the file has
 * something else. */
enum xm_status xm_npy_read(const void *bytes, uint64_t n, struct xm_npy *out,
                           struct xm_error *err);
void xm_npy_free(struct xm_npy *a);

/* The floats of a file with rank 1 (one row), 2, or 3 with first dimension 1. */
struct xm_npy_floats {
    uint64_t rows, cols;
    float *data; /* rows x cols, owned */
};
enum xm_status xm_npy_read_floats(const void *bytes, uint64_t n,
                                  struct xm_npy_floats *out, struct xm_error *err);
void xm_npy_floats_free(struct xm_npy_floats *a);

/* A tensor of any type, as a view of the file's content. */
enum { XM_NPY_MOST_RANK = 8 };
struct xm_npy_view {
    enum xm_element element;
    uint32_t rank;
    uint64_t dim[XM_NPY_MOST_RANK], n; /* n: elements */
    const void *data;                  /* points into the content, with any alignment */
};
enum xm_status xm_npy_open(const void *bytes, uint64_t n, struct xm_npy_view *out,
                           struct xm_error *err);

/* Writes rows x cols floats; "-" is standard output. */
enum xm_status xm_npy_write(const char *path, const float *data, uint64_t rows,
                            uint64_t cols, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
