/* SPDX-License-Identifier: Apache-2.0
 *
 * gather: rows of a table by index. A quantised table (an embedding) is dequantised row by row.
 *   embedding  y[ids…, K] = W[ids, :]
 *   gather     y = x gathered along one axis (any rank; negative indices count from the end)
 * An index out of range gives a row of zeros, because kernels cannot fail; the host checks the ids
 * that it knows.
 */
#ifndef XM_PRIMITIVES_GATHER_GATHER_H
#define XM_PRIMITIVES_GATHER_GATHER_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_EMBEDDING_IDS, XM_EMBEDDING_Y, XM_EMBEDDING_N_OPERANDS };
struct xm_embedding_desc {
    struct xm_device_weight *weight; /* [N,K], referenced */
    enum xm_element ids, dst;        /* i32 or i64; f16 or f32 */
};
enum xm_status xm_embedding_create(struct xm_engine *engine,
                                   const struct xm_embedding_desc *desc,
                                   struct xm_primitive **out, struct xm_error *err);

enum { XM_GATHER_X, XM_GATHER_IDS, XM_GATHER_Y, XM_GATHER_N_OPERANDS };
struct xm_gather_desc {
    uint32_t axis;
    enum xm_element element, ids;
};
enum xm_status xm_gather_create(struct xm_engine *engine,
                                const struct xm_gather_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
