/* SPDX-License-Identifier: Apache-2.0
 *
 * A served model: the compiled model, its package, a scheduler, and the thread that runs the
 * scheduler's steps, which sleeps while there are no jobs.
 *
 * A failure of the device ends all current jobs with its sentence. Later jobs are tried again; on a
 * lost device each of them fails.
 *
 * Embeddings are another program with its own thread (embedding_queue.h).
 */
#ifndef XM_PLUGIN_SERVER_ENGINE_H
#define XM_PLUGIN_SERVER_ENGINE_H

#include "plugin/pipeline/scheduler.h"
#include "plugin/server/embedding_queue.h"
#include "plugin/server/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_served_options {
    const char *name;    /* the name by which requests select the model; copied */
    size_t slots;        /* maximum number of texts that run together, > 0 */
    size_t most_waiting; /* maximum number of other texts that wait; 0: no bound */
    /* maximum number of tokens of prompt and answer together; 0: no bound */
    uint64_t context;
    /* Defaults for requests; its seed is not used. */
    struct xm_sampling sampling;
    /* For xm_scheduler_set_prefix_store; it must outlive the served model. */
    struct xm_prefix_store *prefixes;
    struct xm_embedding_source embeddings;
    /* The model computes only embeddings: `compiled` is not run, and requests for texts are
     * refused. Then `vocabulary` is the number of ids; else it is 0. */
    bool is_for_embeddings;
    uint64_t vocabulary;
};

struct xm_refusal;

struct xm_served {
    char *name; /* owned */
    struct xm_compiled *compiled;
    struct xm_package *package; /* owned by the caller; NULL: ids only */
    struct xm_served_options options;
    uint64_t vocabulary; /* ids are below it; UINT64_MAX: not known */
    int64_t created;     /* seconds since 1970 */
    struct xm_metrics metrics;
    struct xm_served_thread *thread;       /* engine.c */
    struct xm_embedding_queue *embeddings; /* NULL: the model has no embeddings */
};

/* Creates a served model. The caller has read the package's tokenizer, generation, facts, and chat
 * template if there is one; the package must outlive the object. XM_UNSUPPORTED: the device, or
 * this model, can run only one text at a time. */
enum xm_status xm_served_create(struct xm_compiled *compiled, struct xm_package *package,
                                const struct xm_served_options *options,
                                struct xm_served **out, struct xm_error *err);
/* Ends its jobs as cancelled, then its thread; later jobs are refused. */
void xm_served_stop(struct xm_served *m);
/* Stops and frees it. NULL is allowed. */
void xm_served_destroy(struct xm_served *m);

/* As xm_scheduler_submit and xm_scheduler_cancel, and wakes the thread. Any thread may call them.
 * The scheduler bounds the number of waiting jobs. */
enum xm_status xm_served_submit(struct xm_served *m, const struct xm_job *job,
                                uint64_t *id, struct xm_error *err);
void xm_served_cancel(struct xm_served *m, uint64_t id);

/* Whether the model has a tokenizer and a chat template; if not, refuses. */
bool xm_served_takes_messages(const struct xm_served *m, struct xm_refusal *r);

/* Returns the current values of its metrics. Any thread may call it. */
void xm_served_look(const struct xm_served *m, struct xm_metrics_now *out);
/* Whether the last step succeeded; if not, *why is its error. */
bool xm_served_is_well(const struct xm_served *m, struct xm_error *why);

#ifdef __cplusplus
}
#endif
#endif
