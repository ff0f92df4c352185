/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that are alike are recorded once and replayed.
 *
 * A decoded token differs from the one before in its id, its position and the pages of its
 * sequence, which the host or primitives/choose writes to buffers, and in how attention cuts keys.
 * All other launches are the same, arguments included. To make them anew, from symbolic sizes to
 * bound arguments, costs the host some microseconds each, of which a token of 48 layers has 500.
 *
 * What is recorded belongs to a plan, whose buffers it uses, and to the sizes of the run. Launches
 * of attention take the place of recorded ones, where only what differs is bound; when they become
 * others, the next run is recorded. Steps whose launches depend on more are run anew each time:
 * steps on the host, copies and oneDNN's kernels, whose commands are no launches of ours, and steps
 * with an expert cache.
 *
 * Only runs of few rows are recorded: what a prompt takes on the device hides what the host does.
 */
#include <string.h>

#include "plugin/gpu/request_run.h"
#include "transformations/graph/symbols.h"

/* Runs before one that is recorded, because what changes often is not worth it; rows of one that
 * is, at most. */
enum { ALIKE = 3, RECORDED_ROWS = 64 };

void
xm_request_free_recording(struct xm_run_recording *rec)
{
    xm_recording_destroy(rec->launches);
    xm_free(rec->steps);
    *rec = (struct xm_run_recording){0};
}

bool
xm_request_is_alike(const struct xm_request *r, const struct xm_buffer_plan *plan)
{
    const struct xm_bindings *a = &plan->recording.sizes, *b = &r->bindings;
    bool alike = a->n == b->n;
    for (uint32_t i = 0; i < a->n && alike; i++)
        alike = strcmp(a->list[i].symbol, b->list[i].symbol) == 0 &&
                (a->list[i].value == b->list[i].value ||
                 strcmp(a->list[i].symbol, XM_SYMBOL_PAST) == 0);
    return alike;
}

static bool
has_few_rows(const struct xm_bindings *b)
{
    int64_t tokens = 1, batch = 1;
    xm_bindings_find(b, XM_SYMBOL_TOKENS, &tokens);
    xm_bindings_find(b, XM_SYMBOL_BATCH, &batch);
    return tokens <= RECORDED_ROWS && batch <= RECORDED_ROWS / (tokens > 0 ? tokens : 1);
}

/* Without memory for it, or where the engine has no recordings, runs stay as they are. */
static void
start(struct xm_request *r, struct xm_run_recording *rec)
{
    struct xm_error ignored = {0};
    rec->steps = xm_calloc(r->program->n_steps + 1, sizeof(*rec->steps));
    if (!rec->steps || xm_recording_create(r->queue, &rec->launches, &ignored) != XM_OK) {
        xm_free(rec->steps);
        rec->steps = NULL;
        return;
    }
    rec->is_recording = true;
}

void
xm_request_begin_recording(struct xm_request *r)
{
    struct xm_run_recording *rec = &r->plan->recording;
    if (xm_request_is_alike(r, r->plan) && r->program->config.replays && !r->hook)
        rec->same++;
    else
        xm_request_free_recording(rec);
    rec->sizes = r->bindings;
    if (rec->same == ALIKE && !rec->launches && has_few_rows(&rec->sizes))
        start(r, rec);
}

/* The launches of attention have become others, and stay so for long. */
static void
record_next(struct xm_run_recording *rec)
{
    const struct xm_bindings sizes = rec->sizes;
    xm_request_free_recording(rec);
    *rec = (struct xm_run_recording){.sizes = sizes, .same = ALIKE - 1};
}

void
xm_request_end_recording(struct xm_request *r, bool has_succeeded)
{
    struct xm_run_recording *rec = &r->plan->recording;
    if (!has_succeeded)
        xm_request_free_recording(rec);
    if (rec->is_stale)
        record_next(rec);
    rec->is_recording = false;
}

/* Whether the step's launches are those of any such run, or may take their place. */
static bool
may_record(const struct xm_request *r, const struct xm_step *s)
{
    return r->plan->recording.launches &&
           (s->is_steady || s->kind == XM_STEP_ATTENTION) &&
           !(r->has_caches && s->experts);
}

const struct xm_recorded_step *
xm_request_recorded(const struct xm_request *r, const struct xm_step *s)
{
    const struct xm_run_recording *rec = &r->plan->recording;
    if (rec->is_recording || !s->is_steady || !may_record(r, s) ||
        !rec->steps[s->id].is_recorded)
        return NULL;
    return &rec->steps[s->id];
}

enum xm_status
xm_request_replay(struct xm_request *r, const struct xm_recorded_step *s,
                  struct xm_error *err)
{
    r->stats.weight_bytes += s->weight_bytes;
    r->stats.multiply_adds += s->multiply_adds;
    return xm_queue_replay(r->queue, r->plan->recording.launches, s->first, s->n, err);
}

/* Only arguments that have changed are bound. */
static enum xm_status
patch(struct xm_request *r, const struct xm_step *s, xm_step_fn run, struct xm_error *err)
{
    struct xm_run_recording *rec = &r->plan->recording;
    const struct xm_recorded_step *step = &rec->steps[s->id];
    const uint64_t missed = xm_recording_missed(rec->launches);
    xm_queue_patch(r->queue, rec->launches, step->first, step->n);
    const enum xm_status status = run(r, s, err);
    xm_queue_record(r->queue, NULL);
    rec->is_stale |= xm_recording_missed(rec->launches) != missed;
    return status;
}

static enum xm_status
record(struct xm_request *r, const struct xm_step *s, xm_step_fn run,
       struct xm_error *err)
{
    struct xm_run_recording *rec = &r->plan->recording;
    const uint32_t first = xm_recording_launches(rec->launches);
    const uint64_t missed = xm_recording_missed(rec->launches);
    const struct xm_request_stats before = r->stats;
    xm_queue_record(r->queue, rec->launches);
    const enum xm_status status = run(r, s, err);
    xm_queue_record(r->queue, NULL);
    rec->steps[s->id] = (struct xm_recorded_step){
        .is_recorded = xm_recording_missed(rec->launches) == missed,
        .first = first,
        .n = xm_recording_launches(rec->launches) - first,
        .weight_bytes = r->stats.weight_bytes - before.weight_bytes,
        .multiply_adds = r->stats.multiply_adds - before.multiply_adds};
    if (!rec->steps[s->id].is_recorded)
        xm_recording_truncate(rec->launches, first);
    return status;
}

enum xm_status
xm_request_record(struct xm_request *r, const struct xm_step *s, xm_step_fn run,
                  struct xm_error *err)
{
    const struct xm_run_recording *rec = &r->plan->recording;
    if (!may_record(r, s))
        return run(r, s, err);
    if (rec->is_recording)
        return record(r, s, run, err);
    return rec->steps[s->id].is_recorded ? patch(r, s, run, err) : run(r, s, err);
}
