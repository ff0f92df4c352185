/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of attention's operands, because kernels trust them.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_CHECK_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_CHECK_H

#include "primitives/attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_attention_shape {
    uint64_t batch, tokens;   /* of q */
    uint64_t rows, sequences; /* rows: batch * tokens */
    /* the most past + own tokens of a sequence */
    uint64_t most_keys;
    const struct xm_attention_run *run; /* the caller's */
};

/* Computes the shape from q's dimensions and the run's sequences. XM_INVALID: these do not fit each
 * other. Buffers may be absent. */
enum xm_status xm_attention_shape(const struct xm_attention_desc *d,
                                  const struct xm_operand *operands,
                                  const struct xm_attention_run *a,
                                  struct xm_attention_shape *out, struct xm_error *err);
/* Checks types, sizes and presence of every operand. The contents of the tables on the device are
 * not checked; the caller guarantees them: they equal the run's host copies, and page words denote
 * existing pages or are negative for "no page". */
enum xm_status xm_attention_check(const struct xm_attention_desc *d,
                                  const struct xm_operand *operands,
                                  const struct xm_attention_shape *s,
                                  struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
