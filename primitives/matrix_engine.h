/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels for matrix engines (kernels/cl/..._dpas.cl): which weights they can read, how they
 * are built and launched for a device. On a device without matrix engines the kernels emulate them,
 * for tests.
 */
#ifndef XM_PRIMITIVES_MATRIX_ENGINE_H
#define XM_PRIMITIVES_MATRIX_ENGINE_H

#include "runtime/device_info.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a weight for each work-group of the kernels for few tokens, which multiply the stored
 * integers (kernels/cl/include/lane_rows.h). */
enum { XM_INTEGER_ROWS = 32 };
/* Kernels for many tokens (kernels/cl/include/step_gemm.h): rows of a weight for each lane; tokens
 * for each sub-group; sub-groups of a work-group in the kernel of gate and up. */
enum { XM_MATRIX_ROWS = 2, XM_MATRIX_TOKENS = 64, XM_MATRIX_SPLIT = 4 };
/* Kernels for many tokens whose sub-groups share decoded weights, as halves, in local memory
 * (kernels/cl/include/shared_gemm.h): sub-groups of a work-group; columns of h that a work-group of
 * gate and up computes. */
enum { XM_MATRIX_SHARES = 4, XM_MATRIX_SUM_COLS = 32 };
/* The kernel that packs activations for many tokens (kernels/cl/include/pack_steps.h): columns and
 * tokens for each work-group; work-items of a work-group. */
enum { XM_SUPER_COLS = 256, XM_STEPS_TOKENS = 2, XM_STEPS_ITEMS = 16 };
/* Lanes of a sub-group of the kernels for few tokens on devices without matrix engines, which
 * multiply four bytes a lane at once (DP4A). */
enum { XM_DOT_LANES = 8 };

/* Each of the next three functions returns NULL if the kernels that its comment names can multiply
 * activations of type `src` by this weight, else the reason, a static string. This one: kernels for
 * many tokens. */
const char *xm_matrix_refuses(const struct xm_weight *w, enum xm_element src);
/* Kernels for many tokens whose sub-groups share decoded weights (shared_gemm.h). */
const char *xm_matrix_shares_refuse(const struct xm_weight *w, enum xm_element src);
/* Kernels for few tokens, which multiply the stored integers (kernels/cl/include/lane_rows.h). */
const char *xm_matrix_rows_refuse(const struct xm_weight *w, enum xm_element src);
/* Returns the lanes of the sub-groups of these kernels, the fewest that the device supports: 8 or
 * 16. */
uint32_t xm_matrix_lanes(const struct xm_device_info *device);
/* Returns whether the device has matrix engines; if not, the kernels emulate them. */
bool xm_matrix_is_real(const struct xm_device_info *device);

#ifdef __cplusplus
}
#endif
#endif
