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
    uint64_t batch, tokens, past, max_pages;
};

/* From the dimensions alone; buffers may be absent. */
enum xm_status xm_attention_shape(const struct xm_attention_desc *d,
                                  const struct xm_operand *operands, uint64_t past,
                                  struct xm_attention_shape *out, struct xm_error *err);
/* Types, sizes and presence of every operand. The block table's contents are the caller's
 * promise: entries are below the number of pages, or negative for "no page". */
enum xm_status xm_attention_check(const struct xm_attention_desc *d,
                                  const struct xm_operand *operands,
                                  const struct xm_attention_shape *s,
                                  struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
