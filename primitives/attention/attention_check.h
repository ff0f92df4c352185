/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention asks of its operands, before a kernel trusts them.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_CHECK_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_CHECK_H

#include "primitives/attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_attention_shape {
    uint64_t batch, tokens;             /* of q */
    uint64_t rows, sequences;           /* rows: batch * tokens */
    uint64_t most_keys;                 /* of a sequence: past and its tokens */
    const struct xm_attention_run *run; /* the caller's */
};

/* From q's dimensions and what the run says of its sequences; buffers may be absent. */
enum xm_status xm_attention_shape(const struct xm_attention_desc *d,
                                  const struct xm_operand *operands,
                                  const struct xm_attention_run *a,
                                  struct xm_attention_shape *out, struct xm_error *err);
/* Types, sizes and presence of every operand. What the tables on the device hold is the caller's
 * promise: what the run says, words of pages that are there, or negative for "no page". */
enum xm_status xm_attention_check(const struct xm_attention_desc *d,
                                  const struct xm_operand *operands,
                                  const struct xm_attention_shape *s,
                                  struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
