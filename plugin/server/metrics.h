/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters and histograms of a served model, in Prometheus' text format 0.0.4.
 */
#ifndef XM_PLUGIN_SERVER_METRICS_H
#define XM_PLUGIN_SERVER_METRICS_H

#include <pthread.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_N_BUCKETS = 14 };
/* Upper bounds in seconds; the last bucket of a histogram has no bound. */
extern const double xm_metrics_bounds[XM_N_BUCKETS];

struct xm_histogram {
    uint64_t counts[XM_N_BUCKETS + 1];
    double sum;
};

enum xm_metrics_end { XM_ENDED_WHOLE, XM_ENDED_CANCELLED, XM_ENDED_FAILED, XM_N_ENDS };

/* Any thread may add to it; the lock guards it. */
struct xm_metrics {
    pthread_mutex_t lock;
    uint64_t prompt_tokens, reused_tokens, new_tokens, texts[XM_N_ENDS], refused;
    uint64_t embeddings, embedded_tokens;
    struct xm_histogram first_token, between_tokens;
};

enum xm_status xm_metrics_init(struct xm_metrics *m, struct xm_error *err);
void xm_metrics_free(struct xm_metrics *m);

/* Counts a token that came `seconds` after the request for its text, or after the previous
 * token. */
void xm_metrics_add_token(struct xm_metrics *m, bool is_first, double seconds);
struct xm_metrics_text {
    uint64_t prompt, reused;
    enum xm_metrics_end end;
};
void xm_metrics_add_text(struct xm_metrics *m, const struct xm_metrics_text *text);
void xm_metrics_add_refused(struct xm_metrics *m);
/* Counts a request for embeddings of n inputs. */
void xm_metrics_add_embeddings(struct xm_metrics *m, uint64_t n, uint64_t tokens);

/* The current values. */
struct xm_metrics_now {
    const char *model; /* the model's name, used as a label */
    uint64_t waiting, running, slots;
    uint64_t embeddings_waiting;              /* number of embedding requests */
    uint64_t pages, used_pages, cached_pages; /* of the KV cache; pages = 0: not known */
};
/* Appends the samples of n models. */
void xm_metrics_print(struct xm_metrics *const *m, const struct xm_metrics_now *now,
                      size_t n, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
