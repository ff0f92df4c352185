/* SPDX-License-Identifier: Apache-2.0
 *
 * A mesh: one model split over several devices, as a compiled model like any other.
 *
 *     graph ──► device 0: passes ──► split ──► part 0 ──► program 0 ─┐
 *           ──► device 1: passes ──► split ──► part 1 ──► program 1 ─┼── exchanges in lockstep
 *           ──► …                                                    ┘
 *
 * Every device's plugin compiles its part as an ordinary graph, in which the exchanges between
 * ranks are operations (transformations/split). A run runs all ranks, each in a thread. All ranks
 * get the same calls, so their sequences, caches and positions are the same. The results are those
 * of rank 0.
 *
 * In an MPI job each process has one rank. All processes run the same program with the same
 * arguments, and choose the same tokens, because the logits of all ranks are bit-identical.
 *
 * A device whose share is 0 is not used. In an MPI job its process must choose the same tokens, so
 * it gets the results of the first rank; the exchanges of the model are among the others.
 */
#ifndef XM_PLUGIN_MESH_MESH_H
#define XM_PLUGIN_MESH_MESH_H

#include <pthread.h>

#include "plugin/plugin.h"
#include "runtime/collective.h"
#include "runtime/util/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mesh {
    struct xm_compiled base; /* first */
    uint32_t n;              /* ranks of this process: all ranks, or one in an MPI job */
    struct xm_compiled *rank[XM_MOST_RANKS]; /* one reference to each         */
    bool is_again[XM_MOST_RANKS];            /* an earlier rank has the same device */
    /* [n] by which a rank exchanges values; NULL: its share is 0 */
    struct xm_collective *end[XM_MOST_RANKS];
    /* owns end[]; NULL: an MPI job, in which xm_mpi_create makes end[0] */
    struct xm_rank_group *group;
    /* of all processes of an MPI job, also those with the share 0; without such processes it is
     * end[0]. NULL: all ranks are in this process. */
    struct xm_collective *job;
    struct xm_workers *threads; /* a thread for each rank */
    /* the unsplit model on device 0, for xm_infer_ops.check; NULL: not kept */
    struct xm_compiled *whole;
    pthread_mutex_t lock; /* held during a run: exchanges of two runs would mix */
    char *devices;        /* "GPU.0,GPU.1" */
    char *exchanges;      /* text of xm_split_print */
};

/* Calls `run` for all ranks of this process at once, each in a thread, and returns when all calls
 * have returned. If one fails, the exchanges of the others fail, too; *err is the first failure. */
enum xm_status xm_mesh_run(struct xm_mesh *m,
                           enum xm_status (*run)(uint32_t rank, void *ctx,
                                                 struct xm_error *err),
                           void *ctx, struct xm_error *err);

/* Call instead of xm_mesh_run if this process cannot begin the run because of `why`. In an MPI job
 * the others begin it, and it fails for them, too; so the calls after a failed run are the same in
 * all. Returns why->status. */
enum xm_status xm_mesh_fail_run(struct xm_mesh *m, const struct xm_error *why,
                                struct xm_error *err);

/* Makes the processes of an MPI job agree whether a step succeeded that each has done alone: if it
 * failed in one process, or if they cannot ask each other, the call fails in all. *own: the result
 * of this process. *err: the error of the lowest rank that failed. Without a job, returns *own. */
enum xm_status xm_mesh_agree(struct xm_mesh *m, const struct xm_error *own,
                             struct xm_error *err);

/* mesh_requests.c, mesh_sequences.c: operations of xm_compiled_ops. */
enum xm_status xm_mesh_create_request(struct xm_compiled *c, struct xm_infer **out,
                                      struct xm_error *err);
enum xm_status xm_mesh_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                                       struct xm_error *err);
enum xm_status xm_mesh_create_batch(struct xm_compiled *c, struct xm_batch **out,
                                    struct xm_error *err);

/* Truncates the ranks' contexts until all ranks, also of other processes in an MPI job, have
 * equally many positions. `past` returns the number of positions of a rank's context; `shorten`
 * truncates it to `past` positions, or to 0 if that is not possible; then all are truncated to 0.
 * `job`: this process's end of an MPI job, else NULL; n: ranks of this process. */
void xm_mesh_level(struct xm_collective *job, uint32_t n,
                   uint64_t (*past)(uint32_t rank, void *ctx),
                   void (*shorten)(uint32_t rank, uint64_t past, void *ctx), void *ctx);
/* As xm_mesh_level, for all ranks of mesh m; waits until no run is in progress. */
void xm_mesh_level_all(struct xm_mesh *m, uint64_t (*past)(uint32_t rank, void *ctx),
                       void (*shorten)(uint32_t rank, uint64_t past, void *ctx),
                       void *ctx);

/* Sets *out to the sums of the statistics of the n ranks' requests. */
void xm_mesh_sum_stats(struct xm_infer *const *rank, uint32_t n,
                       struct xm_request_stats *out);
static inline struct xm_mesh *
xm_mesh_of(struct xm_compiled *c)
{
    return (struct xm_mesh *)c;
}

#ifdef __cplusplus
}
#endif
#endif
