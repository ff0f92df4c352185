/* SPDX-License-Identifier: Apache-2.0
 *
 * What several passes ask about values: axes, filled constants, small constants made
 * anew.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_PASS_UTIL_H
#define XM_TRANSFORMATIONS_PASSES_PASS_UTIL_H

#include "transformations/rewrite/rewrite.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Results up to this size may be computed while compiling. */
enum { XM_SMALL_BYTES = 64 * 1024 };

/* Whether v is known integers, equal to want[n]. */
bool xm_ints_equal(const struct xm_value *v, const int64_t *want, int n);
/* Whether v holds one integer, which means `axis` (not negative) in `rank`. */
bool xm_is_axis(const struct xm_value *v, uint32_t rank, int64_t axis);
/* Whether v is a constant, or a broadcast one, with every element equal to `number`. */
bool xm_is_filled(const struct xm_value *v, float number);
/* The last dimension, when it is a constant; else -1. */
int64_t xm_last_dim(const struct xm_value *v);
/* Whether n is a reshape whose last dimension stays. */
bool xm_keeps_rows(const struct xm_node *n);
/* Elements of a static shape; false when a dimension is symbolic or the product
 * overflows. */
bool xm_static_elements(const struct xm_shape *s, uint64_t *n);
/* Operand number of a use. */
uint32_t xm_use_index(const struct xm_use *u);
/* A copy of a constant as f32, with another shape of as many elements. */
struct xm_value *xm_const_as_f32(struct xm_builder *b, const struct xm_value *v,
                                 const struct xm_shape *shape);
/* The same as f32[n], n its number of elements; v itself when it is that. */
struct xm_value *xm_const_flat(struct xm_builder *b, const struct xm_value *v);
/* x with the shape of `like`: x itself when it has it. */
struct xm_value *xm_reshape_like(struct xm_builder *b, struct xm_value *x,
                                 const struct xm_shape *like);
/* x[0,2,1,3]: head-major to token-major and back. A transpose that x comes from is undone
 * instead of a second one being added. */
struct xm_value *xm_swap_heads(struct xm_builder *b, struct xm_value *x);
/* What x is the [0,2,1,3] transpose of, as a reshape may spell it when there is one head; NULL
 * when it is not one. */
struct xm_value *xm_unswapped_heads(const struct xm_value *x);

#ifdef __cplusplus
}
#endif
#endif
