/* SPDX-License-Identifier: Apache-2.0
 *
 * row_chain: several row-wise steps in one launch (runtime/reference/reference_row_chain.h has the
 * steps). Values between them are f32; results are rounded once.
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
    /* the results in the forms that desc.prepared says; absent: not wanted */
    XM_ROW_CHAIN_PREPARED = XM_ROW_CHAIN_X + XM_CHAIN_XS,
    XM_ROW_CHAIN_Y = XM_ROW_CHAIN_PREPARED + XM_CHAIN_YS, /* n_y results of that shape */
    XM_ROW_CHAIN_N_OPERANDS = XM_ROW_CHAIN_Y + XM_CHAIN_YS
};
struct xm_row_chain_desc {
    struct xm_row_chain chain;
    uint32_t n;                              /* elements of a row */
    struct xm_buffer *constant[XM_CHAIN_CS]; /* f32 [n], or one number; referenced */
    bool is_number[XM_CHAIN_CS];
    enum xm_element x[XM_CHAIN_XS], y[XM_CHAIN_YS]; /* f16 or f32 */
    struct xm_rows_form prepared[XM_CHAIN_YS];      /* plain: none */
};
/* Whether a chain over rows of n elements can run on any device; else why not. */
const char *xm_row_chain_supports(const struct xm_row_chain *chain, int64_t n);
enum xm_status xm_row_chain_create(struct xm_engine *engine,
                                   const struct xm_row_chain_desc *desc,
                                   struct xm_primitive **out, struct xm_error *err);
/* Whether its kernel writes PREPARED + y: of up to XM_PREPARED_ROWS rows. */
bool xm_row_chain_emits(const struct xm_primitive *chain, uint32_t y);

#ifdef __cplusplus
}
#endif
#endif
