/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables by which attention finds the sequences of a run and their pages
 * (runtime/operations/attention_operation.h): past_lens, subsequence_begins, and for each group of
 * layers block_indices and block_indices_begins. All tables lie in one buffer of the request, which
 * is larger than the run needs, so that the next runs can reuse it.
 */
#ifndef XM_PLUGIN_KV_KV_TABLES_H
#define XM_PLUGIN_KV_KV_TABLES_H

#include "plugin/kv/kv_sequence.h"
#include "primitives/attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_tables;

/* Creates the tables of one request; they must be destroyed before the pool. */
enum xm_status xm_kv_tables_create(struct xm_kv_pool *pool, struct xm_kv_tables **out,
                                   struct xm_error *err);
void xm_kv_tables_destroy(struct xm_kv_tables *t); /* NULL is allowed */

/* Fills the tables for a run of n sequences, in the order in which the run's tokens follow each
 * other. tokens[i] is the number of tokens of sequence i, for which pages are reserved. Enqueues
 * one write, which omits the page tables if they have not changed. A buffer that is too small is
 * replaced; no enqueued command may still use it. */
enum xm_status xm_kv_tables_write(struct xm_kv_tables *t,
                                  struct xm_kv_sequence *const *sequences,
                                  const uint32_t *tokens, uint32_t n, struct xm_queue *q,
                                  struct xm_error *err);
/* Fills the tables for one more token of each of the n sequences of the last run, which ran one
 * token of each and may still be in the queue. The device increments past_lens itself
 * (primitives/choose). Enqueues a write if pages have changed, and waits for the queue if the
 * buffer is too small. */
enum xm_status xm_kv_tables_advance(struct xm_kv_tables *t,
                                    struct xm_kv_sequence *const *sequences, uint32_t n,
                                    struct xm_queue *q, struct xm_error *err);
/* Sets the operands of attention in a layer of `group`, indexed by enum xm_attention_operand. */
void xm_kv_tables_operands(const struct xm_kv_tables *t, uint32_t group,
                           struct xm_operand *operands);
/* Returns the run of the last write or advance, without slabs, with the host's copies of past_lens
 * and subsequence_begins; valid until the next write or advance. Before the first one the run has
 * no sequences. */
const struct xm_attention_run *xm_kv_tables_run(const struct xm_kv_tables *t);

#ifdef __cplusplus
}
#endif
#endif
