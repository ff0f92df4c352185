/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: what the ranks of a mesh exchange. A rank is one part of a program that is split
 * over devices; all ranks call the same collectives in the same order.
 *
 *     rank 0: meet(a) ──┐                    ┌──► a, b, c      until rank 0 meets again
 *     rank 1: meet(b) ──┼── all have come ───┼──► a, b, c
 *     rank 2: meet(c) ──┘                    └──► a, b, c
 *
 * A meeting is an all-gather and a barrier. A rank may still read the bytes of the others until it
 * comes to its next meeting, so they are only known to be read when the next meeting returns.
 * Therefore a rank shows its bytes from two buffers in turn.
 *
 * Sums add the ranks' values in the order of ranks, so that every rank and every run gets the same
 * bits.
 */
#ifndef XM_RUNTIME_COLLECTIVE_H
#define XM_RUNTIME_COLLECTIVE_H

#include "runtime/util/status.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most ranks of a mesh; most messages of one pair of ranks that are sent and not yet received. */
enum { XM_MOST_RANKS = 64, XM_UNREAD_MESSAGES = 4 };

struct xm_collective;

/* How ranks exchange bytes. One thread at a time calls the functions of a rank, except `leave`,
 * which any thread may call. */
struct xm_collective_ops {
    /* Waits until every rank has called it; then all[i] are the bytes that rank i gave, valid until
     * this rank's next call. `mine` must not change until this rank's next call has returned, or
     * the run has ended on all ranks. Fails with the reason of a rank that has left. */
    enum xm_status (*meet)(struct xm_collective *c, struct xm_bytes mine,
                           struct xm_bytes *all, struct xm_error *err);
    /* Sends a copy of `mine` to rank `to`. Waits while XM_UNREAD_MESSAGES messages from this rank
     * to `to` are unread. `send` and `receive` both NULL: these ranks have no messages between two
     * of them. */
    enum xm_status (*send)(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
                           struct xm_error *err);
    /* Waits for the next message that rank `from` sent to this rank and copies it to `to`.
     * XM_INVALID: the message does not have n bytes. A message sent before its rank left is still
     * received. */
    enum xm_status (*receive)(struct xm_collective *c, uint32_t from, uint8_t *to,
                              uint64_t n, struct xm_error *err);
    /* A barrier, called at the end of a run that succeeded on this rank. NULL: not needed, because
     * the ranks are threads and their caller waits for all of them. */
    enum xm_status (*end_run)(struct xm_collective *c, struct xm_error *err);
    /* Reports that the run failed on this rank, which makes no more calls in this run. Present and
     * later calls of the other ranks fail with `why`. If several ranks leave, all report the first
     * reason. */
    void (*leave)(struct xm_collective *c, const struct xm_error *why);
};

/* One rank's access to the group; the first member of an implementation's struct. */
struct xm_collective {
    const struct xm_collective_ops *ops;
    uint32_t rank, ranks;
};

/* y[i] = the sum of all ranks' x[i], i < n, added in f32. Both element types are floats. `x` must
 * stay unchanged as `mine` of meet must, and must not overlap y. */
enum xm_status xm_collective_sum(struct xm_collective *c, enum xm_element x_element,
                                 const void *x, enum xm_element y_element, void *y,
                                 uint64_t n, struct xm_error *err);
/* As xm_collective_sum, but first rounds x in place to elements of type `message`, which are sent.
 * They are not larger than x_element. XM_DYNAMIC: sends x as it is. */
enum xm_status xm_collective_sum_as(struct xm_collective *c, enum xm_element message,
                                    enum xm_element x_element, void *x,
                                    enum xm_element y_element, void *y, uint64_t n,
                                    struct xm_error *err);
/* Joins the ranks' parts of a tensor along one dimension. A rank's part is [outer, n, inner], where
 * `outer` counts the index combinations before that dimension, `inner` the bytes of one index after
 * it; n may differ from rank to rank and is at least 1. `part` must stay unchanged as `mine` of
 * meet must. The result is [outer, sum of all n, inner] in whole[bytes]. XM_INVALID: the parts do
 * not have `bytes` bytes together. */
enum xm_status xm_collective_join(struct xm_collective *c, struct xm_bytes part,
                                  uint64_t outer, uint8_t *whole, uint64_t bytes,
                                  struct xm_error *err);

/* Messages from one rank to another (send and receive of struct xm_collective_ops): pipeline
 * parallelism passes activations from layer to layer with them. A message of 0 bytes is not sent.
 * XM_UNSUPPORTED: these ranks have no messages. */
enum xm_status xm_collective_send(struct xm_collective *c, uint32_t to,
                                  struct xm_bytes mine, struct xm_error *err);
enum xm_status xm_collective_receive(struct xm_collective *c, uint32_t from, uint8_t *to,
                                     uint64_t n, struct xm_error *err);

/* A barrier: returns when all ranks have called it, so that all have read the bytes of earlier
 * meetings. */
enum xm_status xm_collective_wait(struct xm_collective *c, struct xm_error *err);

/* Fails with XM_INVALID unless all ranks give the same bytes. The message names a rank that
 * differs; `what` says what the bytes are, as "model" in "rank 2 has another model than rank 0". */
enum xm_status xm_collective_agree(struct xm_collective *c, struct xm_bytes mine,
                                   const char *what, struct xm_error *err);

/* A group of ranks that are threads of one process. It owns the struct xm_collective of each rank.
 * The callbacks do what xm_rank_group_rank, _reset and _free say. */
struct xm_rank_group;
struct xm_rank_group_ops {
    struct xm_collective *(*rank)(struct xm_rank_group *g, uint32_t rank);
    void (*reset)(struct xm_rank_group *g, struct xm_error *why);
    void (*destroy)(struct xm_rank_group *g);
};
struct xm_rank_group {
    const struct xm_rank_group_ops *ops;
};
void xm_rank_group_free(struct xm_rank_group *g); /* NULL is allowed */
/* The collective of a rank; the group owns it. */
struct xm_collective *xm_rank_group_rank(struct xm_rank_group *g, uint32_t rank);
/* Ends a failed run: copies the reason of the first rank that left to *why (XM_OK if none left),
 * drops unread messages, and lets all ranks call again. No rank may be in a call. */
void xm_rank_group_reset(struct xm_rank_group *g, struct xm_error *why);

/* A group whose ranks read the bytes of the others in place. NULL: no memory, or `ranks` is not 1
 * to XM_MOST_RANKS. Tests can also use runtime/fake/fake_ranks.h. */
struct xm_rank_group *xm_shared_group_create(uint32_t ranks);

#ifdef __cplusplus
}
#endif
#endif
