/* SPDX-License-Identifier: Apache-2.0
 *
 * eltwise: y = f(a), f(a, b) or f(a, b, c), with numpy broadcasting of every operand.
 */
#ifndef XM_PRIMITIVES_ELTWISE_ELTWISE_H
#define XM_PRIMITIVES_ELTWISE_ELTWISE_H

#include "primitives/primitive.h"
#include "runtime/reference/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* eltwise.def has rows FUNCTION(id, number of operands, expression over a, b, c and parameters p0,
 * p1). */
enum xm_eltwise_fn {
#define FUNCTION(id, n, expression) XM_FN_##id,
#include "primitives/eltwise/eltwise.def"
    XM_FN_COUNT
};

enum { XM_ELTWISE_A, XM_ELTWISE_B, XM_ELTWISE_C, XM_ELTWISE_Y, XM_ELTWISE_N_OPERANDS };
struct xm_eltwise_desc {
    enum xm_eltwise_fn fn;
    float p0, p1;               /* clamp bounds, swish beta, elu alpha */
    enum xm_element a, b, c, y; /* f16 f32 i32 i64 u8 boolean; XM_DYNAMIC: absent */
};
const char *xm_eltwise_supports(const struct xm_eltwise_desc *desc);
enum xm_status xm_eltwise_create(struct xm_engine *engine,
                                 const struct xm_eltwise_desc *desc,
                                 struct xm_primitive **out, struct xm_error *err);

/* glu: y = act(gate) * up; all three have the same shape. */
enum { XM_GLU_GATE, XM_GLU_UP, XM_GLU_Y, XM_GLU_N_OPERANDS };
struct xm_glu_desc {
    enum xm_activation activation;
    enum xm_element element;
};
const char *xm_glu_supports(const struct xm_glu_desc *desc);
enum xm_status xm_glu_create(struct xm_engine *engine, const struct xm_glu_desc *desc,
                             struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
