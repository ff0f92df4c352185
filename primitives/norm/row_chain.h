/* SPDX-License-Identifier: Apache-2.0
 *
 * row_chain: several row-wise operations in one launch, such as a residual sum and a norm
 * (runtime/reference/reference_row_chain.h lists the operations). Intermediate values are f32;
 * results are rounded once.
 */
#ifndef XM_PRIMITIVES_NORM_ROW_CHAIN_H
#define XM_PRIMITIVES_NORM_ROW_CHAIN_H

#include "primitives/form.h"
#include "runtime/reference/reference_row_chain.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_ROW_CHAIN_X, /* n_x operands [..,n] of one shape */
    /* the results as prepared rows, in the forms of desc.prepared; absent: not written */
    XM_ROW_CHAIN_PREPARED = XM_ROW_CHAIN_X + XM_CHAIN_XS,
    XM_ROW_CHAIN_Y =
        XM_ROW_CHAIN_PREPARED + XM_CHAIN_YS, /* n_y results of the same shape */
    XM_ROW_CHAIN_N_OPERANDS = XM_ROW_CHAIN_Y + XM_CHAIN_YS
};
struct xm_row_chain_desc {
    struct xm_row_chain chain;
    uint32_t n; /* elements of a row */
    /* f32 [n], or one number if is_number; referenced */
    struct xm_buffer *constant[XM_CHAIN_CS];
    bool is_number[XM_CHAIN_CS];
    enum xm_element x[XM_CHAIN_XS], y[XM_CHAIN_YS]; /* f16 or f32 */
    /* form of PREPARED; plain rows: not written */
    struct xm_rows_form prepared[XM_CHAIN_YS];
};
/* Returns NULL if every device can run the chain over rows of n elements, else the reason, a static
 * string. */
const char *xm_row_chain_supports(const struct xm_row_chain *chain, int64_t n);
enum xm_status xm_row_chain_create(struct xm_engine *engine,
                                   const struct xm_row_chain_desc *desc,
                                   struct xm_primitive **out, struct xm_error *err);
/* Returns whether the chosen kernel writes operand PREPARED + y, for at most XM_FEW_TOKENS rows. */
bool xm_row_chain_emits(const struct xm_primitive *chain, uint32_t y);

#ifdef __cplusplus
}
#endif
#endif
