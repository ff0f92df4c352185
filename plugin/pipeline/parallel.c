/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/parallel.h"

#include <stdlib.h>

/* The run in progress. */
struct run {
    struct xm_scheduler *scheduler;
    const struct xm_parallel_run *asked;
    struct text *texts; /* [asked->n_texts] */
    struct xm_generation_times *times;
    bool is_broken; /* the device failed: texts that end now are not complete */
};

struct text {
    struct run *run;
    struct xm_generation_result *out;
};

/* ---- expected lengths --------------------------------------------------------------------- */

static size_t
prompt_of(const struct xm_parallel_run *asked, size_t text)
{
    return asked->n_prompts == 1 ? 0 : text;
}

/* Returns why a text cannot begin; NULL: nothing was refused. */
static const struct xm_error *
refusal_of(const struct xm_parallel_run *asked, size_t text)
{
    return asked->refused ? &asked->refused[prompt_of(asked, text)] : NULL;
}

/* Returns the maximum number of positions of a text; 0 if it cannot begin. Texts of one prompt are
 * forks: they share the whole pages of the prompt, and each gets its own copy of the last page. */
static uint64_t
positions_of(const struct xm_parallel_run *asked, size_t text, uint64_t page)
{
    const uint64_t prompt = asked->prompts[prompt_of(asked, text)].n;
    const uint64_t most = xm_generation_most(&asked->each, prompt);
    const struct xm_error *refused = refusal_of(asked, text);
    if ((refused && refused->status != XM_OK) || prompt == 0 ||
        xm_generation_room(asked->each.context, prompt) == 0)
        return 0;
    if (most > XM_MOST_ANNOUNCED)
        return UINT64_MAX;
    if (asked->n_prompts > 1 || asked->n_texts == 1)
        return prompt + most;
    return most + (text ? prompt % page : prompt + page);
}

static int
compare_descending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Announces the positions of the longest texts, one for each slot, unless a text may become too
 * long to reserve its memory. */
static enum xm_status
announce(const struct run *r, struct xm_error *err)
{
    const struct xm_parallel_run *asked = r->asked;
    const size_t n = asked->n_texts;
    const uint64_t page = xm_scheduler_page(r->scheduler);
    struct xm_compiled *c = xm_scheduler_compiled(r->scheduler);
    uint64_t *positions = xm_calloc(n, sizeof(*positions));
    if (!positions)
        return xm_no_memory(err, "%zu texts", n);
    for (size_t i = 0; i < n; i++)
        positions[i] = positions_of(asked, i, page);
    qsort(positions, n, sizeof(*positions), compare_descending);
    if (positions[0] < UINT64_MAX && c->ops->expect)
        c->ops->expect(c, positions, asked->slots < n ? asked->slots : n);
    xm_free(positions);
    return XM_OK;
}

/* ---- a run -------------------------------------------------------------------------------- */

static void
on_end(struct xm_generation_result *result, void *ctx)
{
    const struct text *t = ctx;
    const struct run *r = t->run;
    r->times->reused_tokens += result->reused;
    *t->out = *result;
    *result = (struct xm_generation_result){0};
    if (r->asked->on_text && !r->is_broken)
        r->asked->on_text((size_t)(t - r->texts), r->asked->ctx);
}

static struct xm_work
work_done(const struct xm_scheduler *s)
{
    return xm_work_done(xm_scheduler_compiled(s), xm_scheduler_request(s));
}

static void
add_times(struct xm_generation_times *t, const struct xm_work *did,
          const struct xm_scheduler_progress *step)
{
    t->build_s += did->built;
    *(step->has_prompts ? &t->prompt_s : &t->decode_s) += did->seconds;
    *(step->has_prompts ? &t->prompt_tokens : &t->decode_tokens) += step->tokens;
    if (step->has_prompts)
        t->prompt_multiply_adds += did->multiply_adds;
    else
        t->decode_weight_bytes += did->weight_bytes;
}

static enum xm_status
submit_all(struct run *r, struct xm_error *err)
{
    const struct xm_parallel_run *asked = r->asked;
    struct xm_job job = {
        .asked = asked->each, .sampling = asked->sampling, .on_end = on_end};
    job.asked.on_piece = NULL;
    job.asked.is_answer = false; /* thoughts are part of the text */
    for (size_t i = 0; i < asked->n_texts; i++, job.sampling.seed++) {
        const struct xm_token_list *prompt = &asked->prompts[prompt_of(asked, i)];
        job.prompt = prompt->ids;
        job.n_prompt = prompt->n;
        job.refused = refusal_of(asked, i);
        job.ctx = &r->texts[i];
        XM_TRY(xm_scheduler_submit(r->scheduler, &job, NULL, err));
    }
    return XM_OK;
}

static enum xm_status
make_texts(struct run *r, struct xm_error *err)
{
    const struct xm_parallel_run *asked = r->asked;
    struct xm_scheduler_progress step = {.n_jobs = 1};
    XM_TRY(announce(r, err));
    XM_TRY(submit_all(r, err));
    struct xm_work before = work_done(r->scheduler);
    while (step.n_jobs > 0) {
        XM_TRY(xm_scheduler_step(r->scheduler, &step, err));
        const struct xm_work now = work_done(r->scheduler);
        const struct xm_work did = xm_work_between(&before, &now);
        add_times(r->times, &did, &step);
        before = now;
        if (step.tokens > 0)
            xm_clock_add_run_of(asked->each.clock, step.run_s);
        if (step.tokens > 0 && asked->on_run)
            asked->on_run(step.has_prompts, asked->ctx);
    }
    return XM_OK;
}

enum xm_status
xm_parallel_generate(struct xm_scheduler *scheduler, const struct xm_parallel_run *asked,
                     struct xm_generation_result *out, struct xm_generation_times *times,
                     struct xm_error *err)
{
    struct run r = {.scheduler = scheduler,
                    .asked = asked,
                    .times = times,
                    .texts = xm_calloc(asked->n_texts, sizeof(*r.texts))};
    struct xm_error why = {0};
    *times = (struct xm_generation_times){0};
    if (!r.texts)
        return xm_no_memory(err, "%zu texts in parallel", asked->n_texts);
    for (size_t i = 0; i < asked->n_texts; i++)
        r.texts[i] = (struct text){&r, &out[i]};
    xm_scheduler_set_slots(scheduler, asked->slots);
    const enum xm_status s = make_texts(&r, &why);
    r.is_broken = s != XM_OK && s != XM_CANCELLED;
    xm_scheduler_end_all(scheduler, r.is_broken ? &why : NULL);
    xm_free(r.texts);
    return r.is_broken ? xm_fail(err, s, "%s", why.text) : XM_OK;
}
