/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/chooser.h"

#include <inttypes.h>

#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/memory.h"
#include "runtime/util/workers.h"

/* With fewer logits in total, waking a thread takes longer than choosing. */
enum { WORTH_THREADS = 1 << 16 };

struct xm_chooser {
    struct xm_workers *workers; /* NULL: one thread was enough so far */
    size_t n_workers;
    struct xm_sampler_scratch *scratch[XM_MOST_WORKERS]; /* owned; one for each worker */
    size_t n_scratch;
    uint64_t vocabulary; /* the size that the scratch memory was made for */
};

/* A call of xm_chooser_run. */
struct call {
    struct xm_chooser *chooser;
    struct xm_choice *list;
    uint64_t vocabulary;
};

struct xm_chooser *
xm_chooser_create(void)
{
    return xm_calloc(1, sizeof(struct xm_chooser));
}

static void
drop_scratch(struct xm_chooser *c)
{
    while (c->n_scratch > 0)
        xm_sampler_scratch_free(c->scratch[--c->n_scratch]);
}

void
xm_chooser_free(struct xm_chooser *c)
{
    if (!c)
        return;
    xm_workers_free(c->workers);
    drop_scratch(c);
    xm_free(c);
}

static bool
make_workers(struct xm_chooser *c, size_t n)
{
    if (n <= c->n_workers)
        return true;
    xm_workers_free(c->workers);
    c->workers = xm_workers_create(n);
    c->n_workers = c->workers ? n : 0;
    return c->workers != NULL;
}

/* Creates threads and scratch memory for n workers. */
static bool
make_ready(struct xm_chooser *c, size_t n, uint64_t vocabulary)
{
    if (n > 1 && !make_workers(c, n))
        return false;
    if (n > 1)
        n = c->n_workers; /* each worker may take any item */
    if (c->vocabulary != vocabulary)
        drop_scratch(c);
    c->vocabulary = vocabulary;
    for (; c->n_scratch < n; c->n_scratch++) {
        c->scratch[c->n_scratch] = xm_sampler_scratch_create((size_t)vocabulary);
        if (!c->scratch[c->n_scratch])
            return false;
    }
    return true;
}

/* Returns the number of threads for n texts, including the caller's. */
static size_t
count_workers(size_t n, uint64_t vocabulary)
{
    if (n * vocabulary < WORTH_THREADS)
        return 1;
    const size_t cores = xm_workers_cores();
    return n < cores ? n : cores;
}

static void
choose(size_t item, size_t worker, void *ctx)
{
    const struct call *call = ctx;
    struct xm_choice *choice = &call->list[item];
    choice->error = (struct xm_error){0};
    choice->is_sound = xm_dry_run() || xm_logits_are_sound(choice->row, call->vocabulary);
    if (choice->is_sound)
        xm_text_choose(choice->text, xm_dry_run() ? NULL : call->chooser->scratch[worker],
                       choice->row, call->vocabulary, &choice->id, &choice->error);
}

enum xm_status
xm_chooser_run(struct xm_chooser *c, struct xm_choice *list, size_t n,
               uint64_t vocabulary, struct xm_error *err)
{
    struct call call = {c, list, vocabulary};
    const size_t workers = count_workers(n, vocabulary);
    if (!xm_dry_run() && !make_ready(c, workers, vocabulary))
        return xm_fail(err, XM_NO_MEMORY,
                       "out of memory to sample from %" PRIu64 " tokens", vocabulary);
    if (workers > 1 && !xm_dry_run())
        xm_workers_run(c->workers, n, choose, &call);
    else
        for (size_t i = 0; i < n; i++)
            choose(i, 0, &call);
    for (size_t i = 0; i < n && !xm_dry_run(); i++)
        if (list[i].is_sound && list[i].error.status == XM_OK)
            xm_clock_add_token(list[i].text->from.asked->clock);
    return XM_OK;
}
