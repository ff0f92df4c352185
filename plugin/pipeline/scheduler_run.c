/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/scheduler_parts.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

enum {
    /* reserves 1/4 of a chunk for prompts, however many texts decode */
    PREFILL_PARTS = 4
};

enum xm_status
xm_scheduler_reserve_rows(struct xm_scheduler *s, struct xm_error *err)
{
    const size_t n = s->slots;
    if (n <= s->n_room)
        return XM_OK;
    xm_free(s->rows);
    xm_free(s->choices);
    xm_free(s->on_device);
    xm_free(s->choosing);
    xm_free(s->positions);
    s->rows = xm_calloc(n, sizeof(*s->rows));
    s->choices = xm_calloc(n, sizeof(*s->choices));
    s->on_device = xm_calloc(n, sizeof(*s->on_device));
    s->choosing = xm_calloc(n, sizeof(*s->choosing));
    s->positions = xm_calloc(n + 1, sizeof(*s->positions));
    s->n_room =
        s->rows && s->choices && s->on_device && s->choosing && s->positions ? n : 0;
    return s->n_room ? XM_OK : xm_no_memory(err, "%zu texts in parallel", n);
}

/* ---- a run -------------------------------------------------------------------------------- */

/* The contents of a run. */
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

/* Creates the job's sequence and fills it with cached positions of its beginning, from the cache or
 * the store. */
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

/* Adds the tokens of all decoding texts, then parts of prompts, in the order of their jobs, in the
 * rest of a chunk. So decoding texts never wait for a long prompt. */
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

/* Whether the device has already enqueued the run of this step. */
static bool
runs_ahead(const struct xm_scheduler *s)
{
    bool is_any = false;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        j->has_logits = j->is_ahead;
        is_any |= j->is_ahead;
    }
    return is_any;
}

enum xm_status
xm_scheduler_run(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                 struct xm_error *err)
{
    struct feed f = {0};
    struct xm_error why = {0};
    if (runs_ahead(s))
        return XM_OK;
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

/* ---- tokens that the device chooses -------------------------------------------------------- */

void
xm_scheduler_prepare(const struct xm_scheduler *s, const struct xm_text *t)
{
    struct xm_token_choice how;
    if (s->batch->ops->prepare && t->most > 1 &&
        xm_text_will_be_on_device(t, xm_compiled_vocabulary(s->compiled), &how))
        s->batch->ops->prepare(s->batch, &how);
}

void
xm_scheduler_stop_ahead(const struct xm_scheduler *s, struct xm_scheduled_job *j)
{
    if (j->is_ahead)
        s->batch->ops->stop(s->batch, j->sequence);
    j->is_ahead = false;
}

/* Lists the choices for the device. Returns false if the host must choose for all texts, for
 * example because one has no token yet. */
static bool
list_on_device(struct xm_scheduler *s, size_t n)
{
    bool can = s->batch->ops->choose != NULL;
    for (size_t i = 0; i < n && can; i++) {
        const struct xm_scheduled_job *j = s->choosing[i];
        struct xm_device_choice *c = &s->on_device[i];
        c->sequence = j->sequence;
        can = j->is_ahead ||
              (j->result.ids.n > 0 && xm_text_on_device(&j->text, &c->how, &c->seen));
    }
    return can;
}

/* Whether the next step is expected to have these texts and no other. */
static bool
will_go_on(const struct xm_scheduler *s, size_t n)
{
    bool goes_on = n == s->n_running;
    for (size_t i = 0; i < n && goes_on; i++)
        goes_on = xm_text_left(&s->choosing[i]->text) > 1;
    return goes_on;
}

/* Returns XM_UNSUPPORTED if the host must choose. */
static enum xm_status
choose_on_device(struct xm_scheduler *s, size_t n, struct xm_scheduler_progress *out,
                 struct xm_error *err)
{
    struct xm_device_choices c = {s->on_device, (uint32_t)n, .more = will_go_on(s, n)};
    if (!list_on_device(s, n))
        return XM_UNSUPPORTED;
    const bool was_ahead = s->choosing[0]->is_ahead;
    const double start = xm_now();
    XM_TRY(s->batch->ops->choose(s->batch, &c, err));
    if (was_ahead) {
        out->run_s = xm_now() - start;
        out->tokens = n;
    }
    for (size_t i = 0; i < n; i++) {
        struct xm_scheduled_job *j = s->choosing[i];
        const int32_t id = xm_dry_run() ? 0 : s->on_device[i].id;
        s->choices[i] = (struct xm_choice){&j->text, .id = id, .is_sound = id >= 0};
        j->is_ahead = c.is_running;
        xm_text_chosen_on_device(&j->text);
        if (!xm_dry_run())
            xm_clock_add_token(j->text.from.asked->clock);
    }
    return XM_OK;
}

/* ---- tokens ------------------------------------------------------------------------------- */

/* Lists the texts that have logits; returns their number. */
static size_t
list_choices(struct xm_scheduler *s)
{
    size_t n = 0;
    for (struct xm_scheduled_job *j = xm_first_running(s); j; j = xm_next_running(j)) {
        if (!j->has_logits)
            continue;
        j->has_logits = false;
        s->choosing[n++] = j;
    }
    return n;
}

/* Chooses on the host. A text whose sampler cannot be created fails and leaves the list. */
static enum xm_status
choose_on_host(struct xm_scheduler *s, size_t *n, struct xm_error *err)
{
    const size_t n_listed = *n;
    *n = 0;
    for (size_t i = 0; i < n_listed; i++) {
        struct xm_scheduled_job *j = s->choosing[i];
        struct xm_choice *c = &s->choices[*n];
        struct xm_error why = {0};
        uint64_t rows;
        *c = (struct xm_choice){.text = &j->text};
        c->row = s->batch->ops->logits(s->batch, j->row, &rows, &s->vocabulary);
        if (j->result.ids.n == 0 &&
            xm_text_begin_sampling(&j->text, s->vocabulary, &why) != XM_OK)
            xm_scheduler_fail_job(s, j, &why);
        else
            s->choosing[(*n)++] = j;
    }
    return *n ? xm_chooser_run(s->chooser, s->choices, *n, s->vocabulary, err) : XM_OK;
}

/* Gives the chosen token to the text; c->error says why it fails, if it does. */
static void
take(const struct xm_scheduler *s, struct xm_scheduled_job *j, struct xm_choice *c)
{
    if (!c->is_sound)
        xm_logits_fail(s->compiled, xm_job_past(j) - 1, &c->error);
    else if (c->error.status == XM_OK)
        xm_text_take(&j->text, c->id, &c->error);
}

enum xm_status
xm_scheduler_choose(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                    struct xm_error *err)
{
    struct xm_error why = {0};
    size_t n = list_choices(s);
    if (n == 0)
        return XM_OK;
    const enum xm_status status = choose_on_device(s, n, out, &why);
    if (status == XM_UNSUPPORTED && !s->choosing[0]->is_ahead)
        XM_TRY(choose_on_host(s, &n, err));
    else if (status != XM_OK)
        return xm_fail(err, status, "%s", why.text);
    /* First all texts take their tokens, because ending one may wait for the run of its next
     * token. */
    for (size_t i = 0; i < n; i++)
        take(s, s->choosing[i], &s->choices[i]);
    for (size_t i = 0; i < n; i++) {
        struct xm_scheduled_job *j = s->choosing[i];
        const struct xm_error *failed = &s->choices[i].error;
        if (failed->status != XM_OK)
            xm_scheduler_fail_job(s, j, failed);
        else if (j->text.is_over)
            xm_scheduler_finish_job(s, j);
    }
    return XM_OK;
}
