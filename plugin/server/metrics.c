/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/metrics.h"

#include <inttypes.h>
#include <stddef.h>

const double xm_metrics_bounds[XM_N_BUCKETS] = {0.005, 0.01,  0.02,  0.04, 0.08,
                                                0.16,  0.32,  0.64,  1.28, 2.56,
                                                5.12,  10.24, 20.48, 40.96};

enum xm_status
xm_metrics_init(struct xm_metrics *m, struct xm_error *err)
{
    *m = (struct xm_metrics){.prompt_tokens = 0};
    return pthread_mutex_init(&m->lock, NULL) == 0
               ? XM_OK
               : xm_no_memory(err, "a model's metrics");
}

void
xm_metrics_free(struct xm_metrics *m)
{
    pthread_mutex_destroy(&m->lock);
}

static void
observe(struct xm_histogram *h, double seconds)
{
    size_t i = 0;
    while (i < XM_N_BUCKETS && seconds > xm_metrics_bounds[i])
        i++;
    h->counts[i]++;
    h->sum += seconds;
}

void
xm_metrics_add_token(struct xm_metrics *m, bool is_first, double seconds)
{
    pthread_mutex_lock(&m->lock);
    m->new_tokens++;
    observe(is_first ? &m->first_token : &m->between_tokens, seconds);
    pthread_mutex_unlock(&m->lock);
}

void
xm_metrics_add_text(struct xm_metrics *m, const struct xm_metrics_text *text)
{
    pthread_mutex_lock(&m->lock);
    m->prompt_tokens += text->prompt;
    m->reused_tokens += text->reused;
    m->texts[text->end]++;
    pthread_mutex_unlock(&m->lock);
}

void
xm_metrics_add_refused(struct xm_metrics *m)
{
    pthread_mutex_lock(&m->lock);
    m->refused++;
    pthread_mutex_unlock(&m->lock);
}

void
xm_metrics_add_embeddings(struct xm_metrics *m, uint64_t n, uint64_t tokens)
{
    pthread_mutex_lock(&m->lock);
    m->embeddings += n;
    m->embedded_tokens += tokens;
    pthread_mutex_unlock(&m->lock);
}

/* ---- text -------------------------------------------------------------------------------- */

/* Appends a label's value with backslash, quote and newline escaped. */
static void
add_label(struct xm_strbuf *out, const char *model)
{
    xm_strbuf_add(out, "{model=\"");
    for (const char *c = model; *c; c++) {
        if (*c == '\\' || *c == '"')
            xm_strbuf_add_n(out, "\\", 1);
        if (*c == '\n')
            xm_strbuf_add(out, "\\n");
        else
            xm_strbuf_add_n(out, c, 1);
    }
    xm_strbuf_add(out, "\"");
}

static void
add_head(struct xm_strbuf *out, const char *name, const char *type, const char *help)
{
    xm_strbuf_printf(out, "# HELP xemoe_%s %s\n# TYPE xemoe_%s %s\n", name, help, name,
                     type);
}

struct row {
    const char *name, *type, *help;
    size_t at;   /* offset of a uint64_t */
    bool is_now; /* in struct xm_metrics_now instead of struct xm_metrics */
};

/* clang-format off */
#define DONE(member) offsetof(struct xm_metrics, member), false
#define NOW(member)  offsetof(struct xm_metrics_now, member), true
static const struct row rows[] = {
    { "prompt_tokens_total",    "counter", "Tokens of prompts whose texts have ended",        DONE(prompt_tokens) },
    { "reused_tokens_total",    "counter", "Prompt tokens that the KV cache or its files already held", DONE(reused_tokens) },
    { "generated_tokens_total", "counter", "New tokens",                                      DONE(new_tokens) },
    { "refused_requests_total", "counter", "Requests for texts that were refused",           DONE(refused) },
    { "texts_whole_total",      "counter", "Texts that ended by themselves or at their maximum length",  DONE(texts[XM_ENDED_WHOLE]) },
    { "texts_cancelled_total",  "counter", "Texts that were cancelled because the client left or the server stopped",     DONE(texts[XM_ENDED_CANCELLED]) },
    { "texts_failed_total",     "counter", "Texts that failed",                               DONE(texts[XM_ENDED_FAILED]) },
    { "embeddings_total",       "counter", "Embeddings that were computed",                       DONE(embeddings) },
    { "embedded_tokens_total",  "counter", "Tokens of the inputs of embeddings",                          DONE(embedded_tokens) },
    { "texts_waiting",          "gauge",   "Texts that wait to begin",                        NOW(waiting) },
    { "texts_running",          "gauge",   "Texts that run",                                  NOW(running) },
    { "slots",                  "gauge",   "Texts that can run together",                     NOW(slots) },
    { "embeddings_waiting",     "gauge",   "Requests for embeddings that wait to begin",      NOW(embeddings_waiting) },
    { "kv_pages",               "gauge",   "Pages of the KV cache that are allocated",        NOW(pages) },
    { "kv_pages_used",          "gauge",   "Pages of the KV cache that texts use",                    NOW(used_pages) },
    { "kv_pages_cached",        "gauge",   "Free pages of the KV cache that a prompt can reuse",  NOW(cached_pages) },
};
/* clang-format on */

static void
add_row(struct xm_strbuf *out, const struct row *row, const struct xm_metrics *m,
        const struct xm_metrics_now *now)
{
    const char *from = row->is_now ? (const char *)now : (const char *)m;
    xm_strbuf_printf(out, "xemoe_%s", row->name);
    add_label(out, now->model);
    xm_strbuf_printf(out, "} %" PRIu64 "\n",
                     *(const uint64_t *)(const void *)(from + row->at));
}

static void
add_histogram(struct xm_strbuf *out, const char *name, const struct xm_histogram *h,
              const char *model)
{
    uint64_t sum = 0;
    for (size_t i = 0; i <= XM_N_BUCKETS; i++) {
        sum += h->counts[i];
        xm_strbuf_printf(out, "xemoe_%s_bucket", name);
        add_label(out, model);
        if (i < XM_N_BUCKETS)
            xm_strbuf_printf(out, ",le=\"%g\"} %" PRIu64 "\n", xm_metrics_bounds[i], sum);
        else
            xm_strbuf_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
    }
    xm_strbuf_printf(out, "xemoe_%s_sum", name);
    add_label(out, model);
    xm_strbuf_printf(out, "} %.9g\nxemoe_%s_count", h->sum, name);
    add_label(out, model);
    xm_strbuf_printf(out, "} %" PRIu64 "\n", sum);
}

void
xm_metrics_print(struct xm_metrics *const *m, const struct xm_metrics_now *now, size_t n,
                 struct xm_strbuf *out)
{
    for (size_t i = 0; i < n; i++)
        pthread_mutex_lock(&m[i]->lock);
    for (size_t r = 0; r < XM_ARRAY_LEN(rows); r++) {
        add_head(out, rows[r].name, rows[r].type, rows[r].help);
        for (size_t i = 0; i < n; i++)
            add_row(out, &rows[r], m[i], &now[i]);
    }
    add_head(out, "first_token_seconds", "histogram",
             "Seconds from a request to the first token of its text");
    for (size_t i = 0; i < n; i++)
        add_histogram(out, "first_token_seconds", &m[i]->first_token, now[i].model);
    add_head(out, "between_tokens_seconds", "histogram",
             "Seconds from a token of a text to the next");
    for (size_t i = 0; i < n; i++)
        add_histogram(out, "between_tokens_seconds", &m[i]->between_tokens, now[i].model);
    for (size_t i = 0; i < n; i++)
        pthread_mutex_unlock(&m[i]->lock);
}
