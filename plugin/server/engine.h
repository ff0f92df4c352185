/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that is served: compiled, its package, a scheduler, and the thread that steps it, which
 * sleeps while there are no jobs.
 *
 * A failure of the device ends the jobs that there are, with its sentence. Later jobs are tried
 * anew; on a lost device each fails.
 *
 * Embeddings are another program, with a thread of its own (embedding_queue.h).
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
    const char *name;    /* which requests name it by; copied */
    size_t slots;        /* texts that run together, > 0      */
    size_t most_waiting; /* texts beside them; 0: no bound  */
    /* Bound of prompt and text together, in tokens; 0: none */
    uint64_t context;
    /* What holds where a request says nothing; its seed is not used. */
    struct xm_sampling sampling;
    /* As of xm_scheduler_set_prefix_store; it outlives the object. */
    struct xm_prefix_store *prefixes;
    struct xm_embedding_source embeddings;
    /* The model gives embeddings and no texts: `compiled` is not stepped, and its texts are
     * refused. Then `vocabulary` is that of ids; else 0. */
    bool is_for_embeddings;
    uint64_t vocabulary;
};

struct xm_refusal;

struct xm_served {
    char *name; /* owned */
    struct xm_compiled *compiled;
    struct xm_package *package; /* the caller's; NULL: ids only */
    struct xm_served_options options;
    uint64_t vocabulary; /* most ids; UINT64_MAX: not known */
    int64_t created;     /* seconds since 1970 */
    struct xm_metrics metrics;
    struct xm_served_thread *thread;       /* engine.c */
    struct xm_embedding_queue *embeddings; /* NULL: it gives none */
};

/* The package has been read: tokenizer, generation, facts, and chat template if there is one. It
 * outlives the object. XM_UNSUPPORTED: the device, or this model, runs one text at a time. */
enum xm_status xm_served_create(struct xm_compiled *compiled, struct xm_package *package,
                                const struct xm_served_options *options,
                                struct xm_served **out, struct xm_error *err);
/* Ends its jobs as cancelled, and then its thread; takes no jobs any more. */
void xm_served_stop(struct xm_served *m);
/* The same, and frees it. NULL is allowed. */
void xm_served_destroy(struct xm_served *m);

/* As xm_scheduler_submit and xm_scheduler_cancel, and wakes the thread. Any thread. The scheduler
 * bounds the jobs that wait. */
enum xm_status xm_served_submit(struct xm_served *m, const struct xm_job *job,
                                uint64_t *id, struct xm_error *err);
void xm_served_cancel(struct xm_served *m, uint64_t id);

/* Whether it has a tokenizer and a chat template; else refuses. */
bool xm_served_takes_messages(const struct xm_served *m, struct xm_refusal *r);

/* What there is now. Any thread. */
void xm_served_look(const struct xm_served *m, struct xm_metrics_now *out);
/* Whether the last step worked; else *why is why it did not. */
bool xm_served_is_well(const struct xm_served *m, struct xm_error *why);

#ifdef __cplusplus
}
#endif
#endif
