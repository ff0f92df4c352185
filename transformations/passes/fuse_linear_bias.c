/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves the bias of a product with a stored matrix into the operation.
 *
 *     x W^T + b   ->   linear(x, W, b)        b a constant of N elements on the last axis
 *
 * Not done here: constants that differ from row to row.
 */
#include "transformations/passes/pass_util.h"
#include "transformations/pipeline.h"
#include "transformations/rewrite/patterns.h"

enum { X, W, BIAS, PRODUCT };

static bool
is_row(struct xm_match *m)
{
    const struct xm_value *product = m->slot[PRODUCT];
    m->why = "the constant does not have one element for each column of the product";
    return xm_is_row(m->slot[BIAS], xm_last_dim(product)) &&
           xm_shape_eq(&product->type.shape, &m->root->out[0].type.shape);
}

/* clang-format off */
const struct xm_rule xm_rules_fuse_linear_bias[] = {
    { "bias",
      P(ADD, LINEAR_OF(PRODUCT, VAR(X), VAR(W), ABSENT), WEIGHT(BIAS)),
      N(PRODUCT, LINEAR, AT(XM_LINEAR_BIAS, FLAT(BIAS))), .condition = is_row },
    { .name = NULL },
};
/* clang-format on */
