/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins a residual addition with the operation whose result is added.
 *
 *     r + x W^T (+ b)                         ->   linear(x, r, W, b)
 *     r + moe_3gemm_fused_compressed(x, ..)   ->   moe_3gemm_fused_compressed(x, .., r)
 *
 * in either order; reshapes between product and sum are allowed. Both operands must have the shape
 * of the sum, without broadcasting. The sum is then computed in f32 and rounded once.
 */
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { R, X, W, BIAS, END };

static bool
is_of_the_sum(struct xm_match *m)
{
    const struct xm_type *sum = &m->root->out[0].type;
    m->why = "the addend is a constant";
    if (xm_value_is_const(m->slot[R]))
        return false;
    m->why = "the operands of the addition differ in type from their sum";
    for (uint32_t i = 0; i < 2; i++) {
        if (!xm_shape_eq(&xm_in(m->root, i)->type.shape, &sum->shape))
            return false;
    }
    return m->slot[R]->type.element == sum->element;
}

/* clang-format off */
const struct xm_rule xm_rules_fuse_residual_add[] = {
    { "product",
      P(ADD, THROUGH(LINEAR_OF(END, VAR(X), VAR(W), MAYBE(BIAS))), VAR(R)),
      N(END, LINEAR, AT(XM_LINEAR_ADDEND, LIKE(END, VAR(R)))),
      .condition = is_of_the_sum, .keeps_name = true },
    { "experts",
      P(ADD, THROUGH(N(END, MOE_3GEMM_FUSED_COMPRESSED, AT(XM_MOE_ADDEND, ABSENT))), VAR(R)),
      N(END, MOE_3GEMM_FUSED_COMPRESSED, AT(XM_MOE_ADDEND, LIKE(END, VAR(R)))),
      .condition = is_of_the_sum, .keeps_name = true },
    { .name = NULL },
};
/* clang-format on */
