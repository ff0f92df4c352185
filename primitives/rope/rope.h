/* SPDX-License-Identifier: Apache-2.0
 *
 * rope: half-split rotary embedding of x[B,T,heads,D] by tables cos, sin [B|1,T,R], f32.
 * Formula: xm_ref_rope.
 */
#ifndef XM_PRIMITIVES_ROPE_ROPE_H
#define XM_PRIMITIVES_ROPE_ROPE_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_ROPE_X, XM_ROPE_COS, XM_ROPE_SIN, XM_ROPE_Y, XM_ROPE_N_OPERANDS };
struct xm_rope_desc {
    enum xm_element element; /* of x and y: f16 or f32; the tables are f32 */
};
enum xm_status xm_rope_create(struct xm_engine *engine, const struct xm_rope_desc *desc,
                              struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
