/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels are told of a weight: build options for the format, arguments for the
 * bytes. The other side is kernels/cl/include/weights.h.
 */
#ifndef XM_PRIMITIVES_DEVICE_WEIGHT_H
#define XM_PRIMITIVES_DEVICE_WEIGHT_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_WEIGHT_DEFINES = 256, /* room for xm_weight_defines */
    XM_KERNEL_DEFINES = 384, /* and for a kernel's own */
    XM_KERNEL_WEIGHTS = 3,
    XM_PLANE_BLOCK = 16 /* lanes of a plane; see kernels/cl/include/planes.h */
};

/* NULL: kernels can read this weight; else a static sentence. */
const char *xm_weight_unreadable(const struct xm_weight *w);
/* The weights that a kernel reads, as its source counts them. */
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

/* "-DWEI=u4 -DGROUP=128 …": what a kernel reads weight 0, 1 … of: elements of one format, or
 * blocks of any. */
void xm_weight_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes);
/* NULL: one kernel can read both; else a static sentence. */
const char *xm_weight_cannot_join(const struct xm_weight *a, const struct xm_weight *b);
/* Planes of the element type (8, 4 or 1; 1 of blocks), and K rounded up to whole blocks of
 * planes: the floats of one activation row as the vector kernels read it. */
uint32_t xm_weight_planes(const struct xm_weight *w);
uint64_t xm_weight_padded_cols(const struct xm_weight *w);
/* Whether its elements are integers without scales, which kernels read one by one. */
bool xm_weight_is_plain_integers(const struct xm_weight *w);
/* NULL: the vector kernels can read this weight; else a static sentence. */
const char *xm_weight_not_in_planes(const struct xm_weight *w);
/* NULL: the sub-group kernels can read this weight, `words` 32-bit words of a row at a time;
 * else a static sentence. */
const char *xm_weight_not_in_words(const struct xm_weight *w, uint32_t words);
/* NULL: this weight can meet activations of type `src` as 16-bit integers with a factor a block
 * (kernels/cl/include/shorts.h); else a static sentence. */
const char *xm_weight_not_in_shorts(const struct xm_weight *w, enum xm_element src);
/* What the rows of a product look at before all else: the first member of its problem. */
struct xm_product {
    const struct xm_weight *weight;
    enum xm_element src; /* of the activations that meet it */
};
/* The same refusals, for rows of variant tables; `words` is 1. */
const char *xm_product_not_in_planes(const void *problem);
const char *xm_product_not_in_words(const void *problem);
const char *xm_product_not_in_shorts(const void *problem);

/* Rows for one work-item of a vector kernel, when `copies` work-items share each block of
 * rows: several work-items a compute unit, long streams in each. */
uint64_t xm_rows_per_item(const struct xm_device_info *device, uint64_t rows,
                          uint64_t copies);

/* The same in multiples of `block` rows, at least one. */
uint64_t xm_row_blocks_per_item(const struct xm_device_info *device, uint64_t rows,
                                uint64_t copies, uint64_t block);

/* A kernel built for the formats of its weights and some more options (printf). */
enum xm_status xm_weight_kernel(struct xm_engine *engine, const char *name,
                                struct xm_kernel_weights weights, struct xm_kernel **out,
                                struct xm_error *err, const char *fmt, ...)
    XM_PRINTF(6, 7);

#ifdef __cplusplus
}
#endif
#endif
