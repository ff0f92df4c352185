/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence: positions 0 … past - 1 of a context, in pages of the pool.
 *
 * A run stands between reserve, which takes the pages that its tokens will be written to, and
 * commit, or cancel, after which all is as it was. Pages that others use too are copied before they
 * are written. A sequence is used by one thread at a time; different ones by any.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_SEQUENCE_H
#define XM_PLUGIN_GPU_KV_KV_SEQUENCE_H

#include "plugin/gpu/kv/kv_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_sequence;

enum xm_status xm_kv_sequence_create(struct xm_kv_pool *pool, struct xm_kv_sequence **out,
                                     struct xm_error *err);
/* Another one that continues the same positions; copies nothing but page numbers. */
enum xm_status xm_kv_sequence_fork(struct xm_kv_sequence *s, struct xm_kv_sequence **out,
                                   struct xm_error *err);
void xm_kv_sequence_destroy(struct xm_kv_sequence *s); /* NULL is allowed */

uint64_t xm_kv_sequence_past(const struct xm_kv_sequence *s);
/* Positions of a model's row that come before those of the sequence: padding, which is only counted
 * (kv_rows.h). Forks and swaps take it with them. */
uint64_t xm_kv_sequence_padding(const struct xm_kv_sequence *s);
void xm_kv_sequence_set_padding(struct xm_kv_sequence *s, uint64_t padding);
/* Forgets positions from `past` on. A window may have dropped what the rest would need: then all
 * are forgotten. */
void xm_kv_sequence_truncate(struct xm_kv_sequence *s, uint64_t past);
/* Each becomes what the other was. Of one pool. */
void xm_kv_sequence_swap(struct xm_kv_sequence *a, struct xm_kv_sequence *b);
/* An empty sequence takes over, in whole pages, what the pool still has of these tokens; one token
 * at least is left, so that there is something to run. Its past says how many were found. */
enum xm_status xm_kv_sequence_match(struct xm_kv_sequence *s, const int32_t *tokens,
                                    uint64_t n, struct xm_error *err);

/* Pages for `tokens` more positions; copies of shared ones are enqueued. After a failure all is as
 * it was. */
enum xm_status xm_kv_sequence_reserve(struct xm_kv_sequence *s, uint64_t tokens,
                                      struct xm_queue *q, struct xm_error *err);
/* The run has written them. ids: its tokens, by which others may find the pages, where the caches
 * follow from ids alone; NULL: nobody shall. */
void xm_kv_sequence_commit(struct xm_kv_sequence *s, const int32_t *ids);
void xm_kv_sequence_cancel(struct xm_kv_sequence *s);

/* The pages of a group: `n` words, the first of page number `first` (those before it have been
 * dropped). Valid until the sequence is next changed. */
const int32_t *xm_kv_sequence_pages(const struct xm_kv_sequence *s, uint32_t group,
                                    uint32_t *first, uint32_t *n);

#ifdef __cplusplus
}
#endif
#endif
