/* SPDX-License-Identifier: Apache-2.0
 *
 * rms_norm:  y = x / sqrt(mean(x^2) + epsilon) * gamma, over the last dimension.
 */
#ifndef XM_PRIMITIVES_NORM_NORM_H
#define XM_PRIMITIVES_NORM_NORM_H

#include "primitives/form.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_RMS_NORM_X,
    XM_RMS_NORM_PREPARED, /* y in form desc.prepared; absent: not written */
    XM_RMS_NORM_Y,
    XM_RMS_NORM_N_OPERANDS
};
struct xm_rms_norm_desc {
    struct xm_buffer *gamma; /* f32 [n]; NULL: ones; referenced */
    float epsilon;
    enum xm_element src, dst;     /* f16 or f32 */
    struct xm_rows_form prepared; /* form of PREPARED; plain rows: not written */
};
/* Returns NULL if supported, else the reason, a static string. Pure. */
const char *xm_rms_norm_supports(const struct xm_rms_norm_desc *desc);
enum xm_status xm_rms_norm_create(struct xm_engine *engine,
                                  const struct xm_rms_norm_desc *desc,
                                  struct xm_primitive **out, struct xm_error *err);
/* Returns whether its kernel writes operand PREPARED, for at most XM_FEW_TOKENS rows. */
bool xm_rms_norm_emits(const struct xm_primitive *norm);

#ifdef __cplusplus
}
#endif
#endif
