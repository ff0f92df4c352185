/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence: the cached positions 0 … past - 1 of one context, in pages of the pool.
 *
 * Before a run, reserve allocates the pages that its tokens will be written to. After it, commit
 * makes the positions part of the sequence, or cancel restores the previous state. A run may be
 * reserved for while the one before it goes on. A page that is shared with other sequences is
 * copied before it is written. A sequence is used by one thread at a time; different sequences may
 * be used by different threads.
 */
#ifndef XM_PLUGIN_GPU_KV_KV_SEQUENCE_H
#define XM_PLUGIN_GPU_KV_KV_SEQUENCE_H

#include "plugin/gpu/kv/kv_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_sequence;

/* An empty sequence. Destroy it before the pool. */
enum xm_status xm_kv_sequence_create(struct xm_kv_pool *pool, struct xm_kv_sequence **out,
                                     struct xm_error *err);
/* A new sequence with the same positions, which shares their pages; copies only page numbers. */
enum xm_status xm_kv_sequence_fork(struct xm_kv_sequence *s, struct xm_kv_sequence **out,
                                   struct xm_error *err);
void xm_kv_sequence_destroy(struct xm_kv_sequence *s); /* NULL is allowed */

/* The number of committed positions. */
uint64_t xm_kv_sequence_past(const struct xm_kv_sequence *s);
/* Number of padding positions that a row of the model has before those of the sequence. Padding is
 * counted but not stored (kv_rows.h). Fork and swap copy the number. */
uint64_t xm_kv_sequence_padding(const struct xm_kv_sequence *s);
void xm_kv_sequence_set_padding(struct xm_kv_sequence *s, uint64_t padding);
/* Drops the positions from `past` on. Drops all positions if the pages of a sliding window that the
 * remaining ones would need are gone already. */
void xm_kv_sequence_truncate(struct xm_kv_sequence *s, uint64_t past);
/* Exchanges the contents of two sequences of the same pool. */
void xm_kv_sequence_swap(struct xm_kv_sequence *a, struct xm_kv_sequence *b);
/* Fills an empty sequence with the cached positions of the longest prefix of tokens[n] that the
 * pool still has, in whole pages. At least one token is left to run. xm_kv_sequence_past tells how
 * many positions were found. */
enum xm_status xm_kv_sequence_match(struct xm_kv_sequence *s, const int32_t *tokens,
                                    uint64_t n, struct xm_error *err);

/* Reserves pages for `tokens` more positions, behind those that are reserved already; enqueues
 * copies of shared pages. A failure changes nothing. */
enum xm_status xm_kv_sequence_reserve(struct xm_kv_sequence *s, uint64_t tokens,
                                      struct xm_queue *q, struct xm_error *err);
/* Reserves the first `pages` pages of an empty sequence, for contents that no run writes: of a
 * window only those that the next token sees. A failure changes nothing. */
enum xm_status xm_kv_sequence_reserve_pages(struct xm_kv_sequence *s, uint64_t pages,
                                            struct xm_error *err);
/* Ends a run that has written the reserved positions. `ids`: its tokens, by which
 * xm_kv_sequence_match may find the pages; NULL: it must not, because the cached values do not
 * depend on token ids alone. */
void xm_kv_sequence_commit(struct xm_kv_sequence *s, const int32_t *ids);
/* The same for the first n of the reserved positions; the rest stays reserved. */
void xm_kv_sequence_commit_first(struct xm_kv_sequence *s, uint64_t n,
                                 const int32_t *ids);
/* Gives back all reserved pages; no command that writes to them may be in a queue. */
void xm_kv_sequence_cancel(struct xm_kv_sequence *s);
/* The number of reserved positions. */
uint64_t xm_kv_sequence_pending(const struct xm_kv_sequence *s);

/* The sequence's pages in a group: n page indices, the first for page number `first` of the
 * sequence (earlier pages have left the sliding window). Valid until the sequence changes. */
const int32_t *xm_kv_sequence_pages(const struct xm_kv_sequence *s, uint32_t group,
                                    uint32_t *first, uint32_t *n);

#ifdef __cplusplus
}
#endif
#endif
