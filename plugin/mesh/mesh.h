/* SPDX-License-Identifier: Apache-2.0
 *
 * A mesh: one model split over several devices, as a compiled model like any other.
 *
 *     graph ──► device 0: passes ──► split ──► part 0 ──► program 0 ─┐
 *           ──► device 1: passes ──► split ──► part 1 ──► program 1 ─┼── exchanges in lockstep
 *           ──► …                                                    ┘
 *
 * Every device's plugin compiles its part as an ordinary graph, in which the exchanges are
 * operations (transformations/split). A run runs all ranks, each in a thread. Sequences, caches and
 * positions are kept by every rank alike, because every rank is told the same; results are those of
 * rank 0.
 *
 * In an MPI job each process has one rank, and does all that the others do: the same program with
 * the same arguments, which chooses the same tokens, because all ranks get the same logits bit by
 * bit.
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
    uint32_t n; /* ranks of this process: all, or one where each is a process */
    struct xm_compiled *rank[XM_MOST_RANKS];  /* one reference to each      */
    bool is_again[XM_MOST_RANKS];             /* an earlier rank has its device */
    struct xm_collective *end[XM_MOST_RANKS]; /* each rank's */
    /* Which owns them; NULL: an MPI job, whose end[0] is of xm_mpi_create. */
    struct xm_rank_group *group;
    struct xm_workers *threads; /* a thread for each rank */
    struct xm_compiled
        *whole;           /* on the first device: xm_infer_ops.check; NULL: not kept */
    pthread_mutex_t lock; /* of a run: exchanges of two would meet */
    char *devices;        /* "GPU.0,GPU.1" */
    char *exchanges;      /* xm_split_print's lines */
};

/* Calls `run` for all ranks at once, each in a thread, and returns when all have returned. Where
 * one fails the others' exchanges fail, too; *err is that of the first that failed. */
enum xm_status xm_mesh_run(struct xm_mesh *m,
                           enum xm_status (*run)(uint32_t rank, void *ctx,
                                                 struct xm_error *err),
                           void *ctx, struct xm_error *err);

/* What each process of a job has done alone counts if all have: where one has failed, so have the
 * others. *own: how this process fared. *err: as on the first rank that failed. */
enum xm_status xm_mesh_agree(struct xm_mesh *m, const struct xm_error *own,
                             struct xm_error *err);

/* mesh_requests.c, mesh_sequences.c: operations of xm_compiled_ops. */
enum xm_status xm_mesh_create_request(struct xm_compiled *c, struct xm_infer **out,
                                      struct xm_error *err);
enum xm_status xm_mesh_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                                       struct xm_error *err);
enum xm_status xm_mesh_create_batch(struct xm_compiled *c, struct xm_batch **out,
                                    struct xm_error *err);

/* Shortens contexts until all ranks, in an MPI job those of all processes, have as many positions
 * as the shortest. One that cannot be cut there goes to its beginning, and then all do. `job` is
 * this process's end in a job, else NULL; n: ranks of this process. */
void xm_mesh_level(struct xm_collective *job, uint32_t n,
                   uint64_t (*past)(uint32_t rank, void *ctx),
                   void (*shorten)(uint32_t rank, uint64_t past, void *ctx), void *ctx);
/* The same for a mesh's contexts, while no run goes on. */
void xm_mesh_level_all(struct xm_mesh *m, uint64_t (*past)(uint32_t rank, void *ctx),
                       void (*shorten)(uint32_t rank, uint64_t past, void *ctx),
                       void *ctx);

/* The sum over the ranks' requests. */
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
