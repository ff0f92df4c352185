/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes weights to kernels: build options for the format, arguments for the bytes. The kernels'
 * side is kernels/cl/include/weights.h.
 */
#ifndef XM_PRIMITIVES_DEVICE_WEIGHT_H
#define XM_PRIMITIVES_DEVICE_WEIGHT_H

#include "primitives/primitive.h"
#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_WEIGHT_DEFINES = 256, /* bytes of the text of xm_weight_defines   */
    XM_KERNEL_DEFINES = 384, /* bytes of that text and a kernel's own options */
    XM_KERNEL_WEIGHTS = 3,   /* most weights of one kernel               */
    XM_PLANE_BLOCK = 16      /* lanes of a plane; see kernels/cl/include/planes.h */
};

/* NULL: kernels can read this weight; else a static sentence with the reason. */
const char *xm_weight_unreadable(const struct xm_weight *w);
/* The weights that a kernel reads, in the order of its source. */
struct xm_kernel_weights {
    const struct xm_weight *w[XM_KERNEL_WEIGHTS];
    uint32_t n;
};

static inline struct xm_kernel_weights
xm_one_weight(const struct xm_weight *w)
{
    struct xm_kernel_weights weights = {{w}, 1};
    return weights;
}

/* Writes the build options "-DWEI=u4 -DGROUP=128 …" of a kernel's weights, which are either all
 * elements of one format, or blocks of any formats. */
void xm_weight_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes);
/* NULL: one kernel can read both; else a static sentence. */
const char *xm_weight_cannot_join(const struct xm_weight *a, const struct xm_weight *b);
/* Planes of a weight, the number of its elements in a 32-bit word (8, 4 or 1; 1 for blocks); and
 * its columns rounded up to whole blocks of planes, the floats of an activation row for vector
 * kernels. */
uint32_t xm_weight_planes(const struct xm_weight *w);
uint64_t xm_weight_padded_cols(const struct xm_weight *w);
/* Whether the weight's elements are integers without scales, which kernels read one by one. */
bool xm_weight_is_plain_integers(const struct xm_weight *w);
/* The next four: NULL: the kernels named can read this weight; else a static sentence with the
 * reason. The kernels of family vec, which read planes. */
const char *xm_weight_not_in_planes(const struct xm_weight *w);
/* The kernels of family sg, which read `words` 32-bit words of a row at a time. */
const char *xm_weight_not_in_words(const struct xm_weight *w, uint32_t words);
/* The kernels that multiply it by activations of type `src` converted to 16-bit integers with a
 * factor for each block (kernels/cl/include/shorts.h). */
const char *xm_weight_not_in_shorts(const struct xm_weight *w, enum xm_element src);
/* The same of those that convert them to 8-bit integers (kernels/cl/include/bytes.h). */
const char *xm_weight_not_in_bytes(const struct xm_weight *w, enum xm_element src);
/* The rows of a weight for one work-item of a vector kernel, of `rows` in all, when `copies`
 * work-items process each range of rows: few enough rows for several work-items a compute unit, and
 * enough for each to read a long stream. */
uint64_t xm_rows_per_item(const struct xm_device_info *device, uint64_t rows,
                          uint64_t copies);

/* The same in multiples of `block` rows, at least one. */
uint64_t xm_row_blocks_per_item(const struct xm_device_info *device, uint64_t rows,
                                uint64_t copies, uint64_t block);

/* Builds the kernel `name` for the formats of its weights, with further build options (printf). */
enum xm_status xm_weight_kernel(struct xm_engine *engine, const char *name,
                                struct xm_kernel_weights weights, struct xm_kernel **out,
                                struct xm_error *err, const char *fmt, ...)
    XM_PRINTF(6, 7);

#ifdef __cplusplus
}
#endif
#endif
