/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: what the ranks of a mesh exchange. A rank is one part of a program that is split
 * over devices; all ranks call the same collectives in the same order.
 *
 *     rank 0: meet(a) ──┐                    ┌──► a, b, c      until rank 0 meets again
 *     rank 1: meet(b) ──┼── all have come ───┼──► a, b, c
 *     rank 2: meet(c) ──┘                    └──► a, b, c
 *
 * A meeting is an all-gather and a barrier: when the next one returns, every rank has read what was
 * shown in this one. So a rank shows its exchanges from two places in turn.
 *
 * Sums are added in the order of ranks, so that they are the same bits on every rank and in every
 * run.
 */
#ifndef XM_RUNTIME_COLLECTIVE_H
#define XM_RUNTIME_COLLECTIVE_H

#include "runtime/util/status.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MOST_RANKS = 64, XM_UNREAD_MESSAGES = 4 };

struct xm_collective;

/* How ranks reach each other. Each member is used by one thread at a time, but for leave. */
struct xm_collective_ops {
    /* Returns when every rank has called it: all[ranks] are their bytes, which may be read until
     * this rank's next call. `mine` must not change before this rank's next call has returned, or
     * all ranks' runs have ended. A failure is that of a rank that has left. */
    enum xm_status (*meet)(struct xm_collective *c, struct xm_bytes mine,
                           struct xm_bytes *all, struct xm_error *err);
    /* Copies `mine` to where rank `to` receives it, XM_UNREAD_MESSAGES of one pair of ranks at
     * most: then it waits until one is received. NULL, as `receive`: ranks cannot pass values
     * on. */
    enum xm_status (*send)(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
                           struct xm_error *err);
    /* Waits for the next message of rank `from`, in the order in which they were sent; XM_INVALID:
     * it has not n bytes. A message that was sent counts, though its rank has left since. */
    enum xm_status (*receive)(struct xm_collective *c, uint32_t from, uint8_t *to,
                              uint64_t n, struct xm_error *err);
    /* A barrier at the end of a run that has succeeded here. NULL: the ranks are threads, whose
     * caller waits for all of them. */
    enum xm_status (*end_run)(struct xm_collective *c, struct xm_error *err);
    /* The run has failed here, and this rank calls no more in it: the calls of the others, present
     * and later ones, fail with `why`. Of several reasons the first is reported. */
    void (*leave)(struct xm_collective *c, const struct xm_error *why);
};

/* One rank's end; a member of its implementation's struct. */
struct xm_collective {
    const struct xm_collective_ops *ops;
    uint32_t rank, ranks;
};

/* y[n] = the sum of every rank's x[n], added as f32. Both are floats; x follows the rule of
 * meet for `mine`, and does not overlap y. */
enum xm_status xm_collective_sum(struct xm_collective *c, enum xm_element x_element,
                                 const void *x, enum xm_element y_element, void *y,
                                 uint64_t n, struct xm_error *err);
/* The same, but x, an array of x_element, is first rounded in place to elements of `message`, which
 * are no larger: what is sent. XM_DYNAMIC: x as it is. */
enum xm_status xm_collective_sum_as(struct xm_collective *c, enum xm_element message,
                                    enum xm_element x_element, void *x,
                                    enum xm_element y_element, void *y, uint64_t n,
                                    struct xm_error *err);
/* Joins parts of a tensor along a dimension. A rank's part is [outer, n, inner] in units of bytes:
 * `inner` are the bytes behind the dimension; n may differ from rank to rank, and is 1 or more.
 * `part` follows the rule of meet for `mine`.
 * whole: [outer, sum of all n, inner], of `bytes` bytes; XM_INVALID: the parts make another
 * number. */
enum xm_status xm_collective_join(struct xm_collective *c, struct xm_bytes part,
                                  uint64_t outer, uint8_t *whole, uint64_t bytes,
                                  struct xm_error *err);

/* From one rank to another, without the others (struct xm_collective_ops): how values are passed on
 * between layers. Nothing is sent where there are no bytes. XM_UNSUPPORTED: the ranks cannot. */
enum xm_status xm_collective_send(struct xm_collective *c, uint32_t to,
                                  struct xm_bytes mine, struct xm_error *err);
enum xm_status xm_collective_receive(struct xm_collective *c, uint32_t from, uint8_t *to,
                                     uint64_t n, struct xm_error *err);

/* Returns when all ranks have called it: all have read what was shown before. */
enum xm_status xm_collective_wait(struct xm_collective *c, struct xm_error *err);

/* Whether all ranks give the same bytes; XM_INVALID names one that does not, and what `what` is:
 * "rank 2 has another model". */
enum xm_status xm_collective_agree(struct xm_collective *c, struct xm_bytes mine,
                                   const char *what, struct xm_error *err);

/* A group of ranks that are threads of one process; it owns each rank's struct xm_collective. The
 * members do what xm_rank_group_rank, _reset and _free say. */
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
struct xm_collective *xm_rank_group_rank(struct xm_rank_group *g, uint32_t rank);
/* Whether somebody has left, and why (*why, zeroed before); from now on it is as if nobody had. No
 * rank may be in a call. */
void xm_rank_group_reset(struct xm_rank_group *g, struct xm_error *why);

/* A group whose ranks read each other's bytes in place. NULL: no memory, or not 1 to XM_MOST_RANKS
 * ranks. For tests there is runtime/fake/fake_ranks.h, too. */
struct xm_rank_group *xm_shared_group_create(uint32_t ranks);

#ifdef __cplusplus
}
#endif
#endif
