/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence: the cached positions 0 … past - 1 of one context, in pages of the pool.
 *
 * Before a run, reserve allocates the pages to which the run writes its tokens. After the run,
 * commit makes these positions part of the sequence, or cancel restores the previous state. Pages
 * may be reserved for the next run while a run is in the queue. A page that is shared with other
 * sequences is copied before it is written. A sequence is used by one thread at a time; different
 * sequences may be used by different threads.
 */
#ifndef XM_PLUGIN_KV_KV_SEQUENCE_H
#define XM_PLUGIN_KV_KV_SEQUENCE_H

#include "plugin/kv/kv_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_kv_sequence;

/* Creates an empty sequence. Destroy it before the pool. */
enum xm_status xm_kv_sequence_create(struct xm_kv_pool *pool, struct xm_kv_sequence **out,
                                     struct xm_error *err);
/* Creates a sequence with the positions of s, which shares the pages of s; copies only their
 * words. */
enum xm_status xm_kv_sequence_fork(struct xm_kv_sequence *s, struct xm_kv_sequence **out,
                                   struct xm_error *err);
void xm_kv_sequence_destroy(struct xm_kv_sequence *s); /* NULL is allowed */

/* The number of committed positions. */
uint64_t xm_kv_sequence_past(const struct xm_kv_sequence *s);
/* The number of padding positions that the model's row has before the positions of the sequence.
 * Padding counts as positions of the row, but is not stored (kv_rows.h). Fork copies the number,
 * swap exchanges it. */
uint64_t xm_kv_sequence_padding(const struct xm_kv_sequence *s);
void xm_kv_sequence_set_padding(struct xm_kv_sequence *s, uint64_t padding);
/* Drops the positions from `past` on. Drops all positions if the token behind the remaining ones
 * would see positions of a sliding window whose pages are released already. */
void xm_kv_sequence_truncate(struct xm_kv_sequence *s, uint64_t past);
/* Exchanges the contents of two sequences of the same pool. */
void xm_kv_sequence_swap(struct xm_kv_sequence *a, struct xm_kv_sequence *b);
/* Fills an empty sequence with the cached positions of the longest prefix of tokens[n] that the
 * pool still has, in whole pages. At least one token is left to run. xm_kv_sequence_past tells how
 * many positions were found. */
enum xm_status xm_kv_sequence_match(struct xm_kv_sequence *s, const int32_t *tokens,
                                    uint64_t n, struct xm_error *err);

/* Reserves pages for `tokens` more positions, after the positions that are reserved already;
 * enqueues copies of shared pages. A failure changes nothing, except that pages which have left
 * their sliding window may be released: the reservation needs them first. */
enum xm_status xm_kv_sequence_reserve(struct xm_kv_sequence *s, uint64_t tokens,
                                      struct xm_queue *q, struct xm_error *err);
/* Reserves the first `pages` pages of an empty sequence, for contents that no run writes (they come
 * from a file, say). In layers with a sliding window it reserves only those that the next token
 * sees. A failure changes nothing. */
enum xm_status xm_kv_sequence_reserve_pages(struct xm_kv_sequence *s, uint64_t pages,
                                            struct xm_error *err);
/* Ends a run that has written the reserved positions. `ids`: the run's tokens, by which
 * xm_kv_sequence_match can find the pages; NULL: it must not find them, because the cached values
 * do not depend on token ids alone. */
void xm_kv_sequence_commit(struct xm_kv_sequence *s, const int32_t *ids);
/* Commits the first n of the reserved positions; the other ones stay reserved. ids[n]: their
 * tokens, or NULL, as for xm_kv_sequence_commit. */
void xm_kv_sequence_commit_first(struct xm_kv_sequence *s, uint64_t n,
                                 const int32_t *ids);
/* Releases all reserved pages; no command that writes to them may be in a queue. */
void xm_kv_sequence_cancel(struct xm_kv_sequence *s);
/* The number of reserved positions. */
uint64_t xm_kv_sequence_pending(const struct xm_kv_sequence *s);

/* Returns the words of the sequence's pages in a group: *n words, the first for page number *first
 * of the sequence (earlier pages have left the sliding window). Valid until the sequence
 * changes. */
const int32_t *xm_kv_sequence_pages(const struct xm_kv_sequence *s, uint32_t group,
                                    uint32_t *first, uint32_t *n);

#ifdef __cplusplus
}
#endif
#endif
