/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/scheduler_parts.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

enum {
    PREFILL_PARTS = 4
}; /* of a chunk: one is for prompts, however many texts decode */

enum xm_status
xm_scheduler_reserve_rows(struct xm_scheduler *s, struct xm_error *err)
{
    const size_t n = s->slots;
    if (n <= s->n_room)
        return XM_OK;
    xm_free(s->rows);
    xm_free(s->choices);
    xm_free(s->choosing);
    xm_free(s->positions);
    s->rows = xm_calloc(n, sizeof(*s->rows));
    s->choices = xm_calloc(n, sizeof(*s->choices));
    s->choosing = xm_calloc(n, sizeof(*s->choosing));
    s->positions = xm_calloc(n + 1, sizeof(*s->positions));
    s->n_room = s->rows && s->choices && s->choosing && s->positions ? n : 0;
    return s->n_room ? XM_OK : xm_no_memory(err, "%zu texts in parallel", n);
}

/* ---- a run -------------------------------------------------------------------------------- */

/* What a run is made of. */
struct feed {
    uint32_t n;
    uint64_t tokens;
    bool has_prompts;
};

static void
add_row(struct xm_scheduler *s, struct xm_scheduled_job *j, uint64_t n, struct feed *f)
{
    const uint64_t past = xm_job_past(j), rest = xm_job_rest(j);
    j->n_fed = n;
    j->row = f->n;
    s->rows[f->n++] = (struct xm_batch_row){j->sequence, j->text.tokens.ids + past, n,
                                            n == rest ? 1 : 0};
    f->tokens += n;
    f->has_prompts |= j->in_prefill;
}

/* A sequence with what the cache, or the store, has of the beginning. */
static enum xm_status
open_sequence(struct xm_scheduler *s, struct xm_scheduled_job *j, struct xm_error *err)
{
    const struct xm_token_list *t = &j->text.tokens;
    if (!j->sequence)
        XM_TRY(xm_compiled_create_sequence(s->compiled, &j->sequence, err));
    if (xm_job_past(j) > 0)
        return XM_OK;
    XM_TRY(j->sequence->ops->match(j->sequence, t->ids, t->n, err));
    if (s->prefixes)
        xm_prefix_store_load(s->prefixes, j->sequence, t->ids, t->n);
    if (!j->is_again)
        j->result.reused = xm_job_past(j);
    return XM_OK;
}

/* Texts that decode go along in each run; prompts, in the order of their jobs, share what is left
 * of a chunk, so that none waits for a long one to be read. */
static void
fill_batch(struct xm_scheduler *s, struct feed *f)
{
    const uint64_t chunk = s->batch->chunk, least = chunk / PREFILL_PARTS + 1;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        j->n_fed = 0;
        if (!j->in_prefill)
            add_row(s, j, xm_job_rest(j), f);
    }
    uint64_t room = f->tokens + least < chunk ? chunk - f->tokens : least;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        struct xm_error why = {0};
        if (!j->in_prefill || room == 0 || xm_job_waits_for_leader(j))
            continue;
        if (open_sequence(s, j, &why) == XM_OK) {
            add_row(s, j, xm_job_rest(j) < room ? xm_job_rest(j) : room, f);
            room -= j->n_fed;
        } else {
            xm_scheduler_fail_job(s, j, &why);
        }
    }
}

enum xm_status
xm_scheduler_run(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                 struct xm_error *err)
{
    struct feed f = {0};
    struct xm_error why = {0};
    fill_batch(s, &f);
    if (f.n == 0)
        return XM_OK;
    const double start = xm_now();
    const enum xm_status status = s->batch->ops->run(s->batch, s->rows, f.n, &why);
    if (status == XM_NO_MEMORY)
        xm_scheduler_preempt(s, &why);
    if (status != XM_OK)
        return status == XM_NO_MEMORY ? XM_OK : xm_fail(err, status, "%s", why.text);
    out->run_s = xm_now() - start;
    out->tokens = f.tokens;
    out->has_prompts = f.has_prompts;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        j->has_logits = j->n_fed > 0 && xm_job_rest(j) == 0;
        j->in_prefill &= !j->has_logits;
    }
    xm_scheduler_fork_jobs(s);
    return XM_OK;
}

/* ---- tokens ------------------------------------------------------------------------------- */

/* Lists the texts that a token is to be chosen for. */
static size_t
list_choices(struct xm_scheduler *s)
{
    size_t n = 0;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        struct xm_error why = {0};
        struct xm_choice *c = &s->choices[n];
        uint64_t rows;
        if (!j->has_logits)
            continue;
        j->has_logits = false;
        *c = (struct xm_choice){.text = &j->text};
        c->row = s->batch->ops->logits(s->batch, j->row, &rows, &s->vocabulary);
        if (j->result.ids.n == 0 && !xm_dry_run() &&
            xm_text_begin_sampling(&j->text, s->vocabulary, &why) != XM_OK)
            xm_scheduler_fail_job(s, j, &why);
        else
            s->choosing[n++] = j;
    }
    return n;
}

/* What a text makes of the token that has been chosen for it. */
static enum xm_status
take(const struct xm_scheduler *s, struct xm_scheduled_job *j, const struct xm_choice *c,
     struct xm_error *err)
{
    if (!c->is_sound)
        return xm_logits_check(s->compiled, c->row, s->vocabulary, xm_job_past(j) - 1,
                               err);
    if (c->error.status != XM_OK)
        return xm_fail(err, c->error.status, "%s", c->error.text);
    return xm_text_take(&j->text, c->id, err);
}

enum xm_status
xm_scheduler_choose(struct xm_scheduler *s, struct xm_error *err)
{
    const size_t n = list_choices(s);
    if (n > 0)
        XM_TRY(xm_chooser_run(s->chooser, s->choices, n, s->vocabulary, err));
    for (size_t i = 0; i < n; i++) {
        struct xm_error why = {0};
        struct xm_scheduled_job *j = s->choosing[i];
        if (take(s, j, &s->choices[i], &why) != XM_OK)
            xm_scheduler_fail_job(s, j, &why);
        else if (j->text.is_over)
            xm_scheduler_finish_job(s, j);
    }
    return XM_OK;
}
