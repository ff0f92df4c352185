/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside attention: the stage that norms and rotates the rows of q, k and v of a chunk and writes K
 * and V to their pages, in one launch.
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_INPUTS_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_INPUTS_H

#include "primitives/attention/attention_check.h"
#include "primitives/stage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether q is normed, rotated by its position, or rotated because K of few bits is, so
 * that attention reads a changed copy of q. Looks at shapes only. */
bool xm_attention_changes_q(const struct xm_attention_desc *d,
                            const struct xm_operand *operands);
/* Returns the bytes of the changed copy of q. */
uint64_t xm_attention_q_bytes(const struct xm_attention_desc *d,
                              const struct xm_attention_shape *s);
/* Enqueues the stage, which writes the changed q to q_out (NULL: q is read as it is). If there is
 * neither q_out nor K, nothing is enqueued. */
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
