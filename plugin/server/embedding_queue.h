/* SPDX-License-Identifier: Apache-2.0
 *
 * The embeddings of a served model: requests in their order, and the thread that makes them, one
 * request at a time.
 *
 *     submit ──► waiting, in order ──► the queue's thread: the program, made when it is first
 *     cancel                           wanted ──► run of the request
 *
 * The thread is not the one that steps texts: both programs have queues of their own on the device,
 * which interleaves them, and neither waits for the other.
 */
#ifndef XM_PLUGIN_SERVER_EMBEDDING_QUEUE_H
#define XM_PLUGIN_SERVER_EMBEDDING_QUEUE_H

#include "plugin/pipeline/embedder.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_embedding_queue;

/* Where the program comes from. */
struct xm_embedding_source {
    /* Compiles the model for embeddings. Called once, but that a failure for want of memory is
     * tried again. NULL: the model gives none. */
    enum xm_status (*open)(void *ctx, struct xm_embedder **out, struct xm_error *err);
    void *ctx;
    bool at_start; /* it is made at once, not when it is first wanted */
};

/* A request; the caller's until `run` returns. */
struct xm_embedding_job {
    /* Called once, by the queue's thread, without locks. `e` NULL: there is no program, or the job
     * was cancelled before its turn, as *why says. Afterwards the job is not used. */
    void (*run)(struct xm_embedder *e, const struct xm_error *why, void *ctx);
    void *ctx;
    /* The queue's. */
    struct xm_embedding_job *next;
    bool is_cancelled;
};

/* most_waiting: jobs beside the one that runs; 0: no bound. */
enum xm_status xm_embedding_queue_create(const struct xm_embedding_source *source,
                                         size_t most_waiting,
                                         struct xm_embedding_queue **out,
                                         struct xm_error *err);
/* Cancels all jobs and waits for their ends; takes none any more. NULL is allowed. */
void xm_embedding_queue_stop(struct xm_embedding_queue *q);
void xm_embedding_queue_destroy(struct xm_embedding_queue *q); /* the same; NULL too */

/* From any thread. XM_BUSY: too many wait; XM_CANCELLED: the queue stops. Then `run` is not
 * called. */
enum xm_status xm_embedding_queue_submit(struct xm_embedding_queue *q,
                                         struct xm_embedding_job *job,
                                         struct xm_error *err);
/* From any thread, also when the job has ended: a run that has begun returns XM_CANCELLED. */
void xm_embedding_queue_cancel(struct xm_embedding_queue *q,
                               struct xm_embedding_job *job);

/* Jobs that wait, beside the one that runs. Any thread; NULL: 0. */
size_t xm_embedding_queue_n_waiting(struct xm_embedding_queue *q);

#ifdef __cplusplus
}
#endif
#endif
