/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of a model's embedding requests, and the thread that runs them in order, one at a time.
 *
 *     submit ──► waiting, in order ──► the queue's thread: compiles the program for
 *     cancel                           the first request ──► runs the request
 *
 * This thread is not the one that generates texts: both programs have queues of their own on the
 * device, which interleaves them, so that neither waits for the other.
 */
#ifndef XM_PLUGIN_SERVER_EMBEDDING_QUEUE_H
#define XM_PLUGIN_SERVER_EMBEDDING_QUEUE_H

#include "plugin/pipeline/embedder.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_embedding_queue;

/* How the embedding program is made. */
struct xm_embedding_source {
    /* Compiles the model for embeddings. Called once, or again after a failure for lack of memory.
     * NULL: the model has no embeddings. */
    enum xm_status (*open)(void *ctx, struct xm_embedder **out, struct xm_error *err);
    void *ctx;
    bool at_start; /* compile it at the start, not for the first request */
};

/* A request. The caller owns it until `run` has been called. */
struct xm_embedding_job {
    /* Called once, by the queue's thread, without locks. `e` NULL: the program could not be made,
     * or the job was cancelled before its turn; *why says which. The queue does not use the job
     * afterwards. */
    void (*run)(struct xm_embedder *e, const struct xm_error *why, void *ctx);
    void *ctx;
    /* Used by the queue: */
    struct xm_embedding_job *next;
    bool is_cancelled;
};

/* Creates a queue. most_waiting: maximum number of jobs that wait, besides the running one; 0: no
 * bound. */
enum xm_status xm_embedding_queue_create(const struct xm_embedding_source *source,
                                         size_t most_waiting,
                                         struct xm_embedding_queue **out,
                                         struct xm_error *err);
/* Cancels all jobs, waits until they have ended, and refuses later ones. NULL is allowed. */
void xm_embedding_queue_stop(struct xm_embedding_queue *q);
/* stops and frees it; NULL is allowed */
void xm_embedding_queue_destroy(struct xm_embedding_queue *q);

/* Any thread may call it. XM_BUSY: too many jobs wait. XM_CANCELLED: the queue was stopped. After a
 * failure `run` is not called. */
enum xm_status xm_embedding_queue_submit(struct xm_embedding_queue *q,
                                         struct xm_embedding_job *job,
                                         struct xm_error *err);
/* Cancels a job; a run that has begun returns XM_CANCELLED. Any thread may call it, even after the
 * job has ended. */
void xm_embedding_queue_cancel(struct xm_embedding_queue *q,
                               struct xm_embedding_job *job);

/* Returns the number of waiting jobs, without the running one. Any thread; NULL: 0. */
size_t xm_embedding_queue_n_waiting(struct xm_embedding_queue *q);

#ifdef __cplusplus
}
#endif
#endif
