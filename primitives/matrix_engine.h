/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels for matrix engines (kernels/cl/..._dpas.cl): what they can read, how they are
 * built and launched for a device. A device without engines emulates them, for tests.
 */
#ifndef XM_PRIMITIVES_MATRIX_ENGINE_H
#define XM_PRIMITIVES_MATRIX_ENGINE_H

#include "runtime/device_info.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a work-group that takes stored integers. */
enum { XM_INTEGER_ROWS = 32 };
/* Kernels for many tokens (kernels/cl/include/step_gemm.h): rows of a lane; tokens of a sub-group;
 * sub-groups of a work-group for gate and up. */
enum { XM_MATRIX_ROWS = 2, XM_MATRIX_TOKENS = 64, XM_MATRIX_SPLIT = 4 };
/* Those whose sub-groups share halves of weights (shared_gemm.h): sub-groups of a work-group, and
 * columns of h that one makes. */
enum { XM_MATRIX_SHARES = 4, XM_MATRIX_SUM_COLS = 32 };
/* Their activations (kernels/cl/include/pack_steps.h): columns and tokens that a work-group packs;
 * its work-items. */
enum { XM_SUPER_COLS = 256, XM_STEPS_TOKENS = 2, XM_STEPS_ITEMS = 16 };
/* Lanes of a sub-group that takes them without matrix engines: four bytes each. */
enum { XM_DOT_LANES = 8 };

/* NULL: those for many tokens can multiply activations of type `src` with this weight; else a
 * static sentence. */
const char *xm_matrix_refuses(const struct xm_weight *w, enum xm_element src);
/* NULL: those can whose sub-groups share halves; else a static sentence. */
const char *xm_matrix_shares_refuse(const struct xm_weight *w, enum xm_element src);
/* NULL: those for few tokens can, which take stored integers as they are
 * (kernels/cl/include/lane_rows.h); else a static sentence. */
const char *xm_matrix_rows_refuse(const struct xm_weight *w, enum xm_element src);
/* Lanes of their sub-groups, which are the smallest that the chip has: 8 or 16. */
uint32_t xm_matrix_lanes(const struct xm_device_info *device);
/* Whether the device's engines multiply; else they are emulated. */
bool xm_matrix_is_real(const struct xm_device_info *device);

#ifdef __cplusplus
}
#endif
#endif
