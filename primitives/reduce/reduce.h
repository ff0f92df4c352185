/* SPDX-License-Identifier: Apache-2.0
 *
 * reduce: sum, mean, max, min, product over one contiguous run of axes; softmax and top-k over
 * one axis. Accumulated in f32 (floats) or int64.
 */
#ifndef XM_PRIMITIVES_REDUCE_REDUCE_H
#define XM_PRIMITIVES_REDUCE_REDUCE_H

#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_reduce_fn {
    XM_REDUCE_FN_SUM,
    XM_REDUCE_FN_MEAN,
    XM_REDUCE_FN_MAX,
    XM_REDUCE_FN_MIN,
    XM_REDUCE_FN_PROD,
    XM_REDUCE_FN_COUNT
};
enum { XM_REDUCE_X, XM_REDUCE_Y, XM_REDUCE_N_OPERANDS };
struct xm_reduce_desc {
    enum xm_reduce_fn fn;
    /* the axes of x; of y only the number of elements matters */
    uint32_t first_axis, n_axes;
    enum xm_element src, dst;
};
enum xm_status xm_reduce_create(struct xm_engine *engine,
                                const struct xm_reduce_desc *desc,
                                struct xm_primitive **out, struct xm_error *err);

enum { XM_SOFTMAX_X, XM_SOFTMAX_Y, XM_SOFTMAX_N_OPERANDS };
struct xm_softmax_desc {
    uint32_t axis;
    enum xm_element src, dst;
};
enum xm_status xm_softmax_create(struct xm_engine *engine,
                                 const struct xm_softmax_desc *desc,
                                 struct xm_primitive **out, struct xm_error *err);

/* topk: the k largest (or smallest) elements along the last axis of x, sorted; of equal ones the
 * lower index first. k is the last dimension of both outputs. */
enum { XM_TOPK_X, XM_TOPK_VALUES, XM_TOPK_IDS, XM_TOPK_N_OPERANDS };
struct xm_topk_desc {
    bool largest;
    enum xm_element src, values, ids; /* ids: i32 or i64 */
};
enum xm_status xm_topk_create(struct xm_engine *engine, const struct xm_topk_desc *desc,
                              struct xm_primitive **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
