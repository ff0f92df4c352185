/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_sampling [VOCABULARY] [SECONDS]
 *
 * Milliseconds that choosing a token takes on one core, for each setting, beside those of the plain
 * way (heap.h) in the same run: the fastest choice of those that SECONDS have room for. Rows of
 * logits are normally distributed, `peaked` as language models give them (standard deviation 3, a
 * few tokens stand out), `flat` with standard deviation 1. Then the texts of a step, side by side
 * on all cores, and the masks of grammars (grammar.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/util/clock.h"
#include "runtime/util/compiler.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"
#include "runtime/util/workers.h"
#include "tools/bench_sampling/grammar.h"
#include "tools/bench_sampling/heap.h"

enum { ACCEPTED = 2000, TEXTS = 16, PEAKS = 12 };

static const struct setting {
    const char *name;
    struct xm_sampling sampling;
} settings[] = {
    {"greedy", {.top_p = 1}},
    {"temperature", {.temperature = 1, .top_p = 1}},
    {"top_p 0.9", {.temperature = 1, .top_p = 0.9f}},
    {"top_p 0.99", {.temperature = 1, .top_p = 0.99f}},
    {"min_p 0.05", {.temperature = 1, .top_p = 1, .min_p = 0.05f}},
    {"typical 0.9", {.temperature = 1, .top_p = 1, .typical_p = 0.9f}},
    {"top_n_sigma 1", {.temperature = 1, .top_p = 1, .top_n_sigma = 1}},
    {"xtc", {.temperature = 1, .top_p = 1, .xtc_probability = 1, .xtc_threshold = 0.05f}},
    {"mirostat 2", {.temperature = 1, .top_p = 1, .mirostat = 2}},
    {"dry", {.temperature = 1, .top_p = 1, .dry_multiplier = 0.8f}},
    {"typical, top_p", {.temperature = 1, .top_p = 0.9f, .typical_p = 0.9f}},
    {"top_k 40", {.temperature = 1, .top_k = 40, .top_p = 1}},
    {"top_k 20000", {.temperature = 1, .top_k = 20000, .top_p = 1}},
    {"penalties", {.temperature = 1, .top_p = 1, .repetition_penalty = 1.1f}},
    {"all but top_k",
     {.temperature = 0.7f,
      .top_p = 0.95f,
      .min_p = 0.01f,
      .repetition_penalty = 1.1f,
      .presence_penalty = 0.1f,
      .frequency_penalty = 0.1f}},
    {"all",
     {.temperature = 0.7f,
      .top_k = 64,
      .top_p = 0.95f,
      .min_p = 0.01f,
      .repetition_penalty = 1.1f,
      .presence_penalty = 0.1f,
      .frequency_penalty = 0.1f}},
};

struct bench {
    size_t n; /* vocabulary */
    double seconds;
    float *logits, *changed;
    uint32_t *counts;
    int32_t *accepted; /* [ACCEPTED] */
    struct xm_heap_entry *entries;
    struct xm_sampler_scratch *scratch;
    uint64_t random;
};

static double
uniform(struct bench *b)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return ((double)(b->random >> 11) + 0.5) * 0x1p-53;
}

static double
normal(struct bench *b)
{
    const double radius = sqrt(-2 * log(uniform(b)));
    return radius * cos(6.283185307179586 * uniform(b));
}

static void
make_row(struct bench *b, bool is_peaked)
{
    for (size_t i = 0; i < b->n; i++)
        b->logits[i] = (float)((is_peaked ? 3 : 1) * normal(b));
    for (size_t i = 0; is_peaked && i < PEAKS; i++)
        b->logits[(size_t)(uniform(b) * (double)b->n)] = (float)(16 + 6 * uniform(b));
}

/* Seconds of the fastest call. */
static double
time_new(struct bench *b, struct xm_sampler *s)
{
    const double end = xm_now() + b->seconds;
    double best = INFINITY;
    int32_t id;
    for (double start = xm_now(), now; start < end; start = now) {
        xm_sampler_next(s, b->scratch, b->logits, &id, NULL);
        now = xm_now();
        best = now - start < best ? now - start : best;
    }
    return best;
}

static double
time_heap(struct bench *b, const struct xm_sampling *s)
{
    const double end = xm_now() + b->seconds;
    double best = INFINITY;
    for (double start = xm_now(), now; start < end; start = now) {
        xm_heap_choose(s, b->logits, b->n, b->counts, b->changed, b->entries, uniform(b));
        now = xm_now();
        best = now - start < best ? now - start : best;
    }
    return best;
}

static enum xm_status
run_setting(struct bench *b, const struct setting *setting, const char *row,
            struct xm_error *err)
{
    struct xm_sampler *s = NULL;
    XM_TRY(xm_sampler_create(&setting->sampling, b->n, &s, err));
    const enum xm_status status = xm_sampler_begin(s, b->accepted, ACCEPTED, err);
    const bool is_greedy = setting->sampling.temperature == 0.0f;
    const double ours = status == XM_OK ? time_new(b, s) : 0.0;
    const bool is_plain = !is_greedy && xm_heap_knows(&setting->sampling);
    const double heap = is_plain ? time_heap(b, &setting->sampling) : NAN;
    if (status == XM_OK && !is_plain)
        printf("%-14s %-7s %9.3f %11s\n", setting->name, row, 1e3 * ours, "-");
    else if (status == XM_OK)
        printf("%-14s %-7s %9.3f %11.3f %8.1f\n", setting->name, row, 1e3 * ours,
               1e3 * heap, heap / ours);
    xm_sampler_free(s);
    return status;
}

/* ---- the texts of a step ---- */

struct step {
    struct bench *b;
    struct xm_sampler *texts[TEXTS];
    struct xm_sampler_scratch **scratch; /* for each worker */
};

static void
choose(size_t item, size_t worker, void *ctx)
{
    const struct step *s = ctx;
    int32_t id;
    xm_sampler_next(s->texts[item], s->scratch[worker], s->b->logits, &id, NULL);
}

static double
time_step(struct step *s, size_t workers)
{
    struct xm_workers *w = xm_workers_create(workers);
    const double end = xm_now() + s->b->seconds;
    double best = INFINITY;
    for (double start = xm_now(), now; w && start < end; start = now) {
        xm_workers_run(w, TEXTS, choose, s);
        now = xm_now();
        best = now - start < best ? now - start : best;
    }
    xm_workers_free(w);
    return best;
}

static enum xm_status
run_step(struct bench *b, const struct setting *setting, struct xm_error *err)
{
    const size_t cores = xm_workers_cores();
    struct step s = {.b = b, .scratch = xm_calloc(cores, sizeof(*s.scratch))};
    enum xm_status status = s.scratch ? XM_OK : XM_NO_MEMORY;
    for (size_t i = 0; i < cores && status == XM_OK; i++)
        status = (s.scratch[i] = xm_sampler_scratch_create(b->n)) ? XM_OK : XM_NO_MEMORY;
    for (size_t i = 0; i < TEXTS && status == XM_OK; i++) {
        status = xm_sampler_create(&setting->sampling, b->n, &s.texts[i], err);
        if (status == XM_OK)
            status = xm_sampler_begin(s.texts[i], b->accepted, ACCEPTED, err);
    }
    if (status == XM_OK) {
        const double one = time_step(&s, 1), all = time_step(&s, cores);
        printf("a step of %d texts, %s: %.3f ms on one core, %.3f ms on %zu\n", TEXTS,
               setting->name, 1e3 * one, 1e3 * all, cores);
    }
    for (size_t i = 0; i < TEXTS; i++)
        xm_sampler_free(s.texts[i]);
    for (size_t i = 0; s.scratch && i < cores; i++)
        xm_sampler_scratch_free(s.scratch[i]);
    xm_free(s.scratch);
    return status == XM_OK ? status : xm_fail(err, status, "out of memory for a step");
}

/* ---- all of it ---- */

static enum xm_status
make(struct bench *b, struct xm_error *err)
{
    b->logits = xm_calloc(b->n, sizeof(*b->logits));
    b->changed = xm_calloc(b->n, sizeof(*b->changed));
    b->counts = xm_calloc(b->n, sizeof(*b->counts));
    b->accepted = xm_calloc(ACCEPTED, sizeof(*b->accepted));
    b->entries = xm_calloc(b->n, sizeof(*b->entries));
    b->scratch = xm_sampler_scratch_create(b->n);
    if (!b->logits || !b->changed || !b->counts || !b->accepted || !b->entries ||
        !b->scratch)
        return xm_no_memory(err, "%zu tokens", b->n);
    for (size_t i = 0; i < ACCEPTED; i++) {
        b->accepted[i] = (int32_t)(uniform(b) * (double)b->n);
        b->counts[b->accepted[i]]++;
    }
    return XM_OK;
}

static enum xm_status
run(struct bench *b, struct xm_error *err)
{
    static const char *const rows[] = {"peaked", "flat"};
    XM_TRY(make(b, err));
    printf("%zu tokens, %d accepted; ms a token\n%-14s %-7s %9s %11s %8s\n", b->n,
           ACCEPTED, "setting", "row", "xemoe", "plain way", "ratio");
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        make_row(b, i == 0);
        for (size_t k = 0; k < XM_ARRAY_LEN(settings); k++)
            XM_TRY(run_setting(b, &settings[k], rows[i], err));
    }
    make_row(b, true);
    XM_TRY(run_step(b, &settings[XM_ARRAY_LEN(settings) - 1], err));
    return xm_bench_grammars(b->n, err);
}

int
main(int argc, char **argv)
{
    struct bench b = {.n = 262144, .seconds = 0.3, .random = 1};
    struct xm_error err = {0};
    double n = (double)b.n;
    if (argc > 1)
        n = xm_parse_double(argv[1], NULL);
    if (argc > 2)
        b.seconds = xm_parse_double(argv[2], NULL);
    if (argc > 3 || !(n >= 1.0 && n < INT32_MAX) || !(b.seconds > 0.0)) {
        fputs("usage: bench_sampling [VOCABULARY] [SECONDS]\n", stderr);
        return 2;
    }
    b.n = (size_t)n;
    const enum xm_status s = run(&b, &err);
    if (s != XM_OK)
        fprintf(stderr, "bench_sampling: %s\n", err.text);
    xm_free(b.logits);
    xm_free(b.changed);
    xm_free(b.counts);
    xm_free(b.accepted);
    xm_free(b.entries);
    xm_sampler_scratch_free(b.scratch);
    return s == XM_OK ? 0 : 1;
}
