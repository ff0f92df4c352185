/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/scheduler.h"

#include <math.h>
#include <pthread.h>

#include "plugin/pipeline/chooser.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

enum { PROMPT_PARTS = 4 }; /* of a chunk: one is for prompts, however many texts decode */

enum job_state {
    WAITS, /* for admission, the first time or because it gave up its pages */
    RUNS,  /* has a place                                                   */
    OVER   /* the end of the step ends it                                   */
};

struct job {
    struct xm_job asked;
    uint64_t id;
    struct job *next;  /* of its list; written under the lock */
    bool is_cancelled; /* xm_flag_get; any thread sets it     */
    /* The rest belongs to the thread that steps. */
    struct xm_generation_result result; /* its error: why the job fails */
    enum job_state state;
    bool has_begun;         /* its text                */
    bool has_run, is_again; /* it was admitted; for the second time or later */
    struct xm_text text;
    struct xm_sequence *sequence; /* NULL: it holds no pages                     */
    bool is_reading; /* tokens of its prompt, or those that it computes again */
    /* The job that computes the first `shared` tokens of this one, too, which waits for them; NULL:
     * nobody does. is_fork: all of them, so that this one reads the same row of logits. */
    const struct job *leader;
    uint64_t shared;
    bool is_fork;
    uint64_t piece; /* tokens of it in this run     */
    uint32_t row;   /* of the run that has its logits */
    bool has_logits;
};

struct xm_scheduler {
    struct xm_compiled *compiled;
    const struct xm_package *package; /* borrowed; may be NULL */
    struct xm_batch *batch;
    struct xm_chooser *chooser;
    size_t places, n_running;
    /* The first job that waits, where the cache has no room for it until it, or a job that holds
     * pages, is over; NULL: it has not been tried. */
    const struct job *blocked;
    /* In the order of ids, which is that of admission: jobs that have begun come first. The thread
     * that steps changes the list under the lock, and reads it without. */
    struct job *jobs, **end;
    double next_deadline; /* the earliest of all; INFINITY: there is none */
    /* Of a run; [n_room] */
    struct xm_batch_row *rows;
    struct xm_choice *choices; /* tokens that are chosen in this step */
    struct job **choosing;     /* the job of each choice              */
    uint64_t *positions;       /* one more than the others            */
    size_t n_room;
    uint64_t vocabulary; /* size of the last rows of logits */

    pthread_mutex_t lock; /* guards the following, and all links of jobs */
    struct job *new_jobs, **new_end;
    uint64_t last_id;
    size_t n_jobs, n_waiting; /* n_waiting: they have never run */
    bool has_cancelled;
    bool is_closing; /* no job is taken any more */
};

/* ---- life --------------------------------------------------------------------------------- */

enum xm_status
xm_scheduler_create(struct xm_compiled *compiled, const struct xm_package *package,
                    struct xm_scheduler **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_scheduler *s = xm_calloc(1, sizeof(*s));
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        xm_free(s);
        return xm_no_memory(err, "texts in parallel");
    }
    s->compiled = compiled;
    xm_compiled_ref(compiled);
    s->package = package;
    s->places = 1;
    s->end = &s->jobs;
    s->new_end = &s->new_jobs;
    s->next_deadline = INFINITY;
    s->chooser = xm_chooser_create();
    const enum xm_status status = s->chooser
                                      ? xm_compiled_create_batch(compiled, &s->batch, err)
                                      : xm_no_memory(err, "texts in parallel");
    if (status == XM_OK)
        *out = s;
    else
        xm_scheduler_destroy(s);
    return status;
}

void
xm_scheduler_destroy(struct xm_scheduler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->is_closing = true;
    pthread_mutex_unlock(&s->lock);
    xm_scheduler_end_all(s, NULL);
    xm_compiled_destroy_batch(s->batch);
    xm_chooser_free(s->chooser);
    xm_compiled_unref(s->compiled);
    xm_free(s->rows);
    xm_free(s->choices);
    xm_free(s->choosing);
    xm_free(s->positions);
    pthread_mutex_destroy(&s->lock);
    xm_free(s);
}

struct xm_infer *
xm_scheduler_request(const struct xm_scheduler *s)
{
    return s->batch->control;
}

uint64_t
xm_scheduler_page(const struct xm_scheduler *s)
{
    return s->batch->page;
}

void
xm_scheduler_set_places(struct xm_scheduler *s, size_t n)
{
    pthread_mutex_lock(&s->lock);
    s->places = n;
    pthread_mutex_unlock(&s->lock);
}

/* ---- jobs come, from any thread ---------------------------------------------------------- */

static void
append(struct job ***end, struct job *j)
{
    **end = j;
    *end = &j->next;
}

enum xm_status
xm_scheduler_submit(struct xm_scheduler *s, const struct xm_job *job, uint64_t *id,
                    struct xm_error *err)
{
    struct job *j = xm_calloc(1, sizeof(*j));
    if (!j)
        return xm_no_memory(err, "a text");
    j->asked = *job;
    pthread_mutex_lock(&s->lock);
    const size_t n_waiting = s->n_jobs > s->places ? s->n_jobs - s->places : 0;
    const bool is_closing = s->is_closing;
    const size_t most = s->places + job->most_waiting;
    const bool is_taken =
        !is_closing &&
        (!job->most_waiting || (s->n_jobs < most && job->n_more < most - s->n_jobs));
    if (is_taken) {
        j->id = ++s->last_id;
        if (id)
            *id = j->id;
        append(&s->new_end, j);
        s->n_jobs++;
        s->n_waiting++;
    }
    pthread_mutex_unlock(&s->lock);
    if (is_taken)
        return XM_OK;
    xm_free(j);
    if (is_closing)
        return xm_fail(err, XM_CANCELLED, "no texts are taken any more");
    return xm_fail(err, XM_BUSY, "%zu text%s wait%s already", n_waiting,
                   n_waiting == 1 ? "" : "s", n_waiting == 1 ? "s" : "");
}

static void
cancel_in(struct job *list, uint64_t id)
{
    while (list && list->id != id)
        list = list->next;
    if (list)
        xm_flag_set(&list->is_cancelled, true);
}

void
xm_scheduler_cancel(struct xm_scheduler *s, uint64_t id)
{
    pthread_mutex_lock(&s->lock);
    cancel_in(s->jobs, id);
    cancel_in(s->new_jobs, id);
    s->has_cancelled = true;
    pthread_mutex_unlock(&s->lock);
}

/* Whether jobs have been cancelled since the last call. */
static bool
take_new_jobs(struct xm_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    const bool has_cancelled = s->has_cancelled;
    const struct job *first = s->new_jobs;
    s->has_cancelled = false;
    if (first) {
        *s->end = s->new_jobs;
        s->end = s->new_end;
        s->new_jobs = NULL;
        s->new_end = &s->new_jobs;
    }
    pthread_mutex_unlock(&s->lock);
    for (; first; first = first->next)
        if (first->asked.deadline > 0.0)
            s->next_deadline = fmin(s->next_deadline, first->asked.deadline);
    return has_cancelled;
}

/* ---- what a job holds -------------------------------------------------------------------- */

static uint64_t
past_of(const struct job *j)
{
    return j->sequence ? j->sequence->ops->past(j->sequence) : 0;
}

/* Tokens that the sequence does not hold yet. */
static uint64_t
rest_of(const struct job *j)
{
    return j->text.tokens.n - past_of(j);
}

/* The first job from `j` on that runs; those that have not begun are behind all others. */
static struct job *
running_from(struct job *j)
{
    while (j && j->state != RUNS)
        j = j->has_begun ? j->next : NULL;
    return j;
}

static struct job *
first_running(const struct xm_scheduler *s)
{
    return running_from(s->jobs);
}

static struct job *
next_running(const struct job *j)
{
    return running_from(j->next);
}

/* ---- beginnings that jobs share ----------------------------------------------------------- */

static uint64_t
same_tokens(const struct xm_token_list *a, const struct xm_token_list *b)
{
    uint64_t n = 0;
    while (n < a->n && n < b->n && a->ids[n] == b->ids[n])
        n++;
    return n;
}

/* Finds the older job that computes the most of what this one needs, too. Whole pages are shared,
 * and at least one token is left to run. */
static void
find_leader(const struct xm_scheduler *s, struct job *j)
{
    const struct xm_token_list *t = &j->text.tokens;
    j->leader = NULL;
    j->shared = 0;
    j->is_fork = false;
    for (struct job *l = first_running(s); l; l = next_running(l)) {
        if (l->id >= j->id)
            break;
        const uint64_t same = same_tokens(&l->text.tokens, t);
        const bool is_fork = same == t->n && same == l->text.tokens.n;
        const uint64_t most = same < t->n ? same : t->n - 1;
        const uint64_t shared = is_fork ? t->n : most - most % s->batch->page;
        if (!l->is_reading || past_of(l) >= shared || shared <= j->shared)
            continue;
        j->leader = l;
        j->shared = shared;
        j->is_fork = is_fork;
    }
}

static bool
waits_for_leader(struct job *j)
{
    if (j->leader && (j->is_fork || past_of(j->leader) < j->shared))
        return true;
    j->leader = NULL;
    return false;
}

/* The jobs with the same prompt as one that has just been read: they read the same row of logits. A
 * job that cannot be forked reads its prompt itself. */
static void
fork_jobs(struct xm_scheduler *s)
{
    for (struct job *j = first_running(s); j; j = next_running(j)) {
        const struct job *l = j->leader;
        if (!l || !j->is_fork || !l->has_logits)
            continue;
        j->leader = NULL;
        if (xm_compiled_fork_sequence(l->sequence, &j->sequence, NULL) != XM_OK) {
            j->shared = 0;
            continue;
        }
        j->result.reused = j->is_again ? j->result.reused : j->text.n_prompt;
        j->row = l->row;
        j->is_reading = false;
        j->has_logits = true;
    }
}

/* ---- admission ---------------------------------------------------------------------------- */

/* Gives up the place and the pages of a job. Those that wait for it look for another. */
static void
leave_place(struct xm_scheduler *s, struct job *j, enum job_state state)
{
    const bool had_place = j->state == RUNS;
    j->state = state;
    j->has_logits = false;
    if (!had_place)
        return;
    s->n_running--;
    xm_compiled_destroy_sequence(j->sequence);
    j->sequence = NULL;
    for (struct job *k = first_running(s); k; k = next_running(k))
        if (k->leader == j)
            find_leader(s, k);
}

/* The job is over. The end of the step tells it. */
static void
finish_job(struct xm_scheduler *s, struct job *j)
{
    if (j->sequence || j == s->blocked)
        s->blocked = NULL;
    leave_place(s, j, OVER);
}

static void
fail_job(struct xm_scheduler *s, struct job *j, const struct xm_error *why)
{
    xm_fail(&j->result.error, why->status, "%s", why->text);
    finish_job(s, j);
}

static enum xm_status
begin_text(const struct xm_scheduler *s, struct job *j, struct xm_error *err)
{
    const struct xm_text_source from = {s->package, &j->asked.asked, &j->asked.sampling,
                                        NULL};
    const struct xm_error *refused = j->asked.refused;
    if (refused && refused->status != XM_OK)
        return xm_fail(err, refused->status, "%s", refused->text);
    if (j->asked.n_prompt == 0)
        return xm_fail(err, XM_INVALID, "the prompt is empty");
    return xm_text_begin(&j->text, &from, j->asked.prompt, j->asked.n_prompt, &j->result,
                         err);
}

/* The first job that waits, with a text; NULL: there is none. */
static struct job *
first_waiting(struct xm_scheduler *s)
{
    for (struct job *j = s->jobs; j; j = j->next) {
        struct xm_error why = {0};
        if (j->state != WAITS)
            continue;
        if (j->has_begun)
            return j;
        j->has_begun = true;
        if (begin_text(s, j, &why) != XM_OK)
            fail_job(s, j, &why);
        else if (j->text.is_over)
            finish_job(s, j);
        else
            return j;
    }
    return NULL;
}

/* Positions that a job will hold beside those that it holds or that another computes for it, until
 * it has its next token. */
static uint64_t
need_of(const struct job *j)
{
    return rest_of(j) - (j->sequence ? 0 : j->shared) + 1;
}

/* Whether the cache has room for the job beside those that run, each with another page. One alone
 * is tried: the device says why it has no room. */
static bool
has_room(struct xm_scheduler *s, const struct job *j)
{
    size_t n = 0;
    if (s->n_running == 0 || s->blocked || !s->compiled->ops->has_room)
        return s->n_running == 0 || !s->blocked;
    for (struct job *k = first_running(s); k; k = next_running(k))
        s->positions[n++] = need_of(k);
    s->positions[n++] = need_of(j);
    return s->compiled->ops->has_room(s->compiled, s->positions, n);
}

static void
admit(struct xm_scheduler *s)
{
    struct job *j;
    while (s->n_running < s->places && (j = first_waiting(s))) {
        find_leader(s, j);
        s->blocked = has_room(s, j) ? NULL : j;
        if (s->blocked)
            return;
        j->state = RUNS;
        j->is_reading = true;
        j->is_again = j->has_run;
        s->n_running++;
        if (!j->has_run) {
            pthread_mutex_lock(&s->lock);
            s->n_waiting--;
            pthread_mutex_unlock(&s->lock);
        }
        j->has_run = true;
    }
}

/* Memory for as many rows as there are places. */
static enum xm_status
reserve(struct xm_scheduler *s, struct xm_error *err)
{
    const size_t n = s->places;
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
add_row(struct xm_scheduler *s, struct job *j, uint64_t n, struct feed *f)
{
    const uint64_t past = past_of(j), rest = rest_of(j);
    j->piece = n;
    j->row = f->n;
    s->rows[f->n++] = (struct xm_batch_row){j->sequence, j->text.tokens.ids + past, n,
                                            n == rest ? 1 : 0};
    f->tokens += n;
    f->has_prompts |= j->is_reading;
}

/* A sequence with what the cache has of the beginning. */
static enum xm_status
open_sequence(struct xm_scheduler *s, struct job *j, struct xm_error *err)
{
    const struct xm_token_list *t = &j->text.tokens;
    if (!j->sequence)
        XM_TRY(xm_compiled_create_sequence(s->compiled, &j->sequence, err));
    if (past_of(j) > 0)
        return XM_OK;
    XM_TRY(j->sequence->ops->match(j->sequence, t->ids, t->n, err));
    if (!j->is_again)
        j->result.reused = past_of(j);
    return XM_OK;
}

/* Texts that decode go along in each run; prompts, in the order of their jobs, share what is left
 * of a chunk, so that none waits for a long one to be read. */
static void
choose_pieces(struct xm_scheduler *s, struct feed *f)
{
    const uint64_t chunk = s->batch->chunk, least = chunk / PROMPT_PARTS + 1;
    for (struct job *j = first_running(s); j; j = next_running(j)) {
        j->piece = 0;
        if (!j->is_reading)
            add_row(s, j, rest_of(j), f);
    }
    uint64_t room = f->tokens + least < chunk ? chunk - f->tokens : least;
    for (struct job *j = first_running(s); j; j = next_running(j)) {
        struct xm_error why = {0};
        if (!j->is_reading || room == 0 || waits_for_leader(j))
            continue;
        if (open_sequence(s, j, &why) == XM_OK) {
            add_row(s, j, rest_of(j) < room ? rest_of(j) : room, f);
            room -= j->piece;
        } else {
            fail_job(s, j, &why);
        }
    }
}

/* The newest job gives up its pages and waits; one that has no room alone has failed. */
static void
make_room(struct xm_scheduler *s, const struct xm_error *why)
{
    struct job *newest = NULL;
    size_t n_holders = 0;
    for (struct job *j = first_running(s); j; j = next_running(j)) {
        n_holders += j->sequence != NULL;
        newest = j->sequence ? j : newest;
    }
    if (n_holders == 1) {
        newest->result.no_room = true;
        fail_job(s, newest, why);
    } else {
        leave_place(s, newest, WAITS);
        s->blocked = newest;
    }
}

static enum xm_status
run(struct xm_scheduler *s, struct xm_scheduler_progress *out, struct xm_error *err)
{
    struct feed f = {0};
    struct xm_error why = {0};
    choose_pieces(s, &f);
    if (f.n == 0)
        return XM_OK;
    const double start = xm_now();
    const enum xm_status status = s->batch->ops->run(s->batch, s->rows, f.n, &why);
    if (status == XM_NO_MEMORY)
        make_room(s, &why);
    if (status != XM_OK)
        return status == XM_NO_MEMORY ? XM_OK : xm_fail(err, status, "%s", why.text);
    out->run_s = xm_now() - start;
    out->tokens = f.tokens;
    out->has_prompts = f.has_prompts;
    for (struct job *j = first_running(s); j; j = next_running(j)) {
        j->has_logits = j->piece > 0 && rest_of(j) == 0;
        j->is_reading &= !j->has_logits;
    }
    fork_jobs(s);
    return XM_OK;
}

/* ---- tokens ------------------------------------------------------------------------------- */

/* Lists the texts that a token is to be chosen for. */
static size_t
list_choices(struct xm_scheduler *s)
{
    size_t n = 0;
    for (struct job *j = first_running(s); j; j = next_running(j)) {
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
            fail_job(s, j, &why);
        else
            s->choosing[n++] = j;
    }
    return n;
}

/* What a text makes of the token that has been chosen for it. */
static enum xm_status
take(const struct xm_scheduler *s, struct job *j, const struct xm_choice *c,
     struct xm_error *err)
{
    if (!c->is_sound)
        return xm_logits_check(s->compiled, c->row, s->vocabulary, past_of(j) - 1, err);
    if (c->error.status != XM_OK)
        return xm_fail(err, c->error.status, "%s", c->error.text);
    return xm_text_take(&j->text, c->id, err);
}

static enum xm_status
choose(struct xm_scheduler *s, struct xm_error *err)
{
    const size_t n = list_choices(s);
    if (n > 0)
        XM_TRY(xm_chooser_run(s->chooser, s->choices, n, s->vocabulary, err));
    for (size_t i = 0; i < n; i++) {
        struct xm_error why = {0};
        struct job *j = s->choosing[i];
        if (take(s, j, &s->choices[i], &why) != XM_OK)
            fail_job(s, j, &why);
        else if (j->text.is_over)
            finish_job(s, j);
    }
    return XM_OK;
}

/* ---- jobs go ------------------------------------------------------------------------------ */

/* Takes the job out of the list and tells its end. */
static void
end_job(struct xm_scheduler *s, struct job **at)
{
    struct job *j = *at;
    struct xm_error *why = &j->result.error; /* the first cause wins */
    pthread_mutex_lock(&s->lock);
    *at = j->next;
    s->end = *at ? s->end : at;
    s->n_jobs--;
    s->n_waiting -= !j->has_run;
    pthread_mutex_unlock(&s->lock);
    if (j->text.out)
        xm_text_end(&j->text, why);
    if (why->status != XM_OK)
        j->result.finish = XM_FINISH_FAILED;
    j->asked.on_end(&j->result, j->asked.ctx);
    xm_text_free(&j->text);
    xm_generation_result_free(&j->result);
    xm_free(j);
}

/* Of the jobs that have begun: those behind them are not over. */
static void
end_those_over(struct xm_scheduler *s)
{
    struct job **at = &s->jobs;
    while (*at && (*at)->has_begun) {
        if ((*at)->state == OVER)
            end_job(s, at);
        else
            at = &(*at)->next;
    }
}

static void
cancel_job(struct xm_scheduler *s, struct job *j)
{
    finish_job(s, j);
    j->result.finish = XM_FINISH_CANCELLED;
}

/* Ends cancelled jobs and those whose deadline has passed. */
static void
end_late_jobs(struct xm_scheduler *s, bool has_cancelled)
{
    const double now = s->next_deadline < INFINITY ? xm_now() : 0.0;
    if (!has_cancelled && now < s->next_deadline)
        return;
    s->next_deadline = INFINITY;
    for (struct job **at = &s->jobs; *at;) {
        struct job *j = *at;
        struct xm_error why = {0};
        const double deadline = j->asked.deadline;
        const bool is_late = deadline > 0.0 && deadline <= now;
        if (xm_flag_get(&j->is_cancelled)) {
            cancel_job(s, j);
        } else if (is_late) {
            xm_fail(&why, XM_CANCELLED,
                    "the deadline has passed: the text has %zu token%s", j->result.ids.n,
                    j->result.ids.n == 1 ? "" : "s");
            fail_job(s, j, &why);
        } else if (deadline > 0.0) {
            s->next_deadline = fmin(s->next_deadline, deadline);
        }
        if (j->state == OVER)
            end_job(s, at);
        else
            at = &j->next;
    }
}

void
xm_scheduler_end_all(struct xm_scheduler *s, const struct xm_error *why)
{
    take_new_jobs(s);
    while (s->jobs) {
        struct job *j = s->jobs;
        if (j->state != OVER && why)
            fail_job(s, j, why);
        else if (j->state != OVER)
            cancel_job(s, j);
        end_job(s, &s->jobs);
    }
    s->next_deadline = INFINITY;
}

/* ---- steps -------------------------------------------------------------------------------- */

enum xm_status
xm_scheduler_step(struct xm_scheduler *s, struct xm_scheduler_progress *out,
                  struct xm_error *err)
{
    *out = (struct xm_scheduler_progress){0};
    end_late_jobs(s, take_new_jobs(s));
    XM_TRY(reserve(s, err));
    admit(s);
    XM_TRY(run(s, out, err));
    XM_TRY(choose(s, err));
    end_those_over(s);
    pthread_mutex_lock(&s->lock);
    out->n_jobs = s->n_jobs;
    out->n_waiting = s->n_waiting;
    pthread_mutex_unlock(&s->lock);
    return XM_OK;
}
