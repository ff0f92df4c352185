/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside attention: the stage that norms and rotates the chunk's rows and writes K and V to
 * their pages, in one launch.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_INPUTS_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_INPUTS_H

#include "primitives/attention/attention_check.h"
#include "primitives/stage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether q is normed or rotated, by its position or as keys of few bits are, so that attention
 * reads a copy of it; looks at shapes only. */
bool xm_attention_changes_q(const struct xm_attention_desc *d,
                            const struct xm_operand *operands);
/* Bytes of that copy. */
uint64_t xm_attention_q_bytes(const struct xm_attention_desc *d,
                              const struct xm_attention_shape *s);
/* Enqueues the stage; q_out NULL: q stays. Nothing to do is done with nothing enqueued. */
enum xm_status xm_attention_take_inputs(const struct xm_stage *stage,
                                        const struct xm_attention_desc *d,
                                        const struct xm_operand *operands,
                                        const struct xm_attention_shape *s,
                                        struct xm_buffer *q_out, const struct xm_run *run,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
