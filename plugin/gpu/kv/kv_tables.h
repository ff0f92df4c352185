/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention reads of a run's sequences (runtime/operations/attention_operation.h): past_lens,
 * subsequence_begins, and for each group block_indices and their begins. All lie in one buffer of
 * the request, with room for more than the run at hand, so that the next one needs no other.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_TABLES_H
#define XM_PLUGIN_GPU_KV_KV_TABLES_H

#include "plugin/gpu/kv/kv_sequence.h"
#include "primitives/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_tables;

enum xm_status xm_kv_tables_create(struct xm_kv_pool *pool, struct xm_kv_tables **out,
                                   struct xm_error *err);
void xm_kv_tables_destroy(struct xm_kv_tables *t); /* NULL is allowed */

/* Sequences in the order of their tokens' rows, with the pages reserved. Enqueues one write,
 * without the pages where those are as they were. A buffer that becomes too small is replaced:
 * nothing enqueued may use the old one. */
enum xm_status xm_kv_tables_write(struct xm_kv_tables *t,
                                  struct xm_kv_sequence *const *sequences,
                                  const uint32_t *tokens, uint32_t n, struct xm_queue *q,
                                  struct xm_error *err);
/* The operands of a layer of `group`, by enum xm_attention_operand. */
void xm_kv_tables_operands(const struct xm_kv_tables *t, uint32_t group,
                           struct xm_operand *operands);
/* The host's copies: [n] and [n + 1]. */
const int32_t *xm_kv_tables_past_lens(const struct xm_kv_tables *t);
const int32_t *xm_kv_tables_begins(const struct xm_kv_tables *t);
uint32_t xm_kv_tables_sequences(const struct xm_kv_tables *t);

#ifdef __cplusplus
}
#endif
#endif
