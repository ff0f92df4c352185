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
    XM_WEIGHT_ARGS = 3, /* data, scale, zero point                                  */
    XM_WEIGHT_DEFINES = 192, /* room for xm_weight_defines */
    XM_PLANE_BLOCK = 16 /* lanes of a plane; see kernels/cl/include/planes.h        */
};

/* NULL: kernels can read this weight; else a static sentence. */
const char *xm_weight_unreadable(const struct xm_weight *w);
/* "-DWEI=u4 -DGROUP=128 …" */
void xm_weight_defines(const struct xm_weight *w, char *out, size_t out_bytes);
/* Fills XM_WEIGHT_ARGS arguments; absent parts become null pointers. */
void xm_weight_args(const struct xm_device_weight *w, struct xm_arg *args);

/* Planes of the element type (8, 4 or 1), and K rounded up to whole blocks of planes: the
 * floats of one activation row as the vector kernels read it. */
uint32_t xm_weight_planes(const struct xm_weight *w);
uint64_t xm_weight_padded_cols(const struct xm_weight *w);
/* NULL: the vector kernels can read this weight; else a static sentence. */
const char *xm_weight_not_in_planes(const struct xm_weight *w);

#ifdef __cplusplus
}
#endif
#endif
