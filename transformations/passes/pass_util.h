/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicates and helpers on values that several passes share: axes, filled constants, heads.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_PASS_UTIL_H
#define XM_TRANSFORMATIONS_PASSES_PASS_UTIL_H

#include "transformations/rewrite/rewrite.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of a result that a pass may compute on the host. */
enum { XM_SMALL_BYTES = 64 * 1024 };

/* Whether v is known integers that equal want[n]. */
bool xm_ints_equal(const struct xm_value *v, const int64_t *want, int n);
/* Whether v is one known integer that denotes axis `axis` (>= 0) of `rank` dimensions; it may count
 * from the end (-1). */
bool xm_is_axis(const struct xm_value *v, uint32_t rank, int64_t axis);
/* Whether v is a constant, or a broadcast constant, all of whose elements equal `number`. */
bool xm_is_filled(const struct xm_value *v, float number);
/* Whether v is a float constant of n elements, all on its last axis. */
bool xm_is_row(const struct xm_value *v, int64_t n);
/* The last dimension if it is a constant; else -1. */
int64_t xm_last_dim(const struct xm_value *v);
/* Whether n is a reshape that keeps the last dimension. */
bool xm_keeps_rows(const struct xm_node *n);
/* Evaluates v, which depends on constants only, on the host, and returns the result as a constant.
 * NULL: v is NULL, or a failure in graph->err. Removes v's node if it has no uses. */
struct xm_value *xm_const_of(struct xm_builder *b, struct xm_value *v);
/* The number of the operand that a use is. */
uint32_t xm_use_index(const struct xm_use *u);
/* The transpose x[0,2,1,3], from head-major to token-major or back. If x itself is such a
 * transpose, its operand is returned and no node is added. */
struct xm_value *xm_swap_heads(struct xm_builder *b, struct xm_value *x);
/* The value whose [0,2,1,3] transpose is x; with one head the transpose may be a reshape. NULL: x
 * is no such transpose. */
struct xm_value *xm_unswapped_heads(const struct xm_value *x);

#ifdef __cplusplus
}
#endif
#endif
