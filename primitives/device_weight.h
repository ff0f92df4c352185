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
    XM_WEIGHT_DEFINES = 256, /* bytes of the text that xm_weight_defines writes */
    XM_KERNEL_DEFINES = 384, /* bytes of that text plus a kernel's own options */
    XM_KERNEL_WEIGHTS = 3,   /* most weights of one kernel               */
    XM_PLANE_BLOCK = 16      /* lanes of a plane; see kernels/cl/include/planes.h */
};

/* Returns NULL if kernels can read this weight, else the reason, a static string. */
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
/* Returns NULL if one kernel can read both weights, else the reason, a static string. */
const char *xm_weight_cannot_join(const struct xm_weight *a, const struct xm_weight *b);
/* Returns the planes of a weight: its elements in a 32-bit word, 8 (4 bits) or 4 (8 bits); 1 for
 * wider elements, blocks and codes. */
uint32_t xm_weight_planes(const struct xm_weight *w);
/* Returns the columns of a weight rounded up to a multiple of XM_PLANE_BLOCK * planes: the floats
 * of an activation row that vector kernels read. */
uint64_t xm_weight_padded_cols(const struct xm_weight *w);
/* Whether the weight's elements are integers without scales, which kernels read one by one. */
bool xm_weight_is_plain_integers(const struct xm_weight *w);
/* Each of the next four functions returns NULL if the kernels that its comment names can read this
 * weight, else the reason, a static string. This one: kernels of family vec, which read planes. */
const char *xm_weight_not_in_planes(const struct xm_weight *w);
/* Kernels of family sg, which read `words` 32-bit words of a row at a time. */
const char *xm_weight_not_in_words(const struct xm_weight *w, uint32_t words);
/* Kernels that multiply the weight by activations of type `src`, converted to 16-bit integers with
 * one scale per block (kernels/cl/include/shorts.h). */
const char *xm_weight_not_in_shorts(const struct xm_weight *w, enum xm_element src);
/* Kernels that multiply the weight by activations of type `src`, converted to 8-bit integers
 * (kernels/cl/include/bytes.h). */
const char *xm_weight_not_in_bytes(const struct xm_weight *w, enum xm_element src);
/* Returns how many of a weight's `rows` rows one work-item of a vector kernel processes (8 to 64),
 * if `copies` work-items process each range of rows: few enough that each compute unit gets several
 * work-items, enough that each work-item reads a long stream. */
uint64_t xm_rows_per_item(const struct xm_device_info *device, uint64_t rows,
                          uint64_t copies);

/* Returns xm_rows_per_item rounded down to a multiple of `block` rows, but at least `block`. */
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
