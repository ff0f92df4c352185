/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording and replaying the launches of runs that have the same sizes.
 *
 * A decoded token differs from the one before it in its id, its position and the pages of its
 * sequence, which the host or primitives/choose writes to buffers, and in how attention divides the
 * keys. All other launches and their arguments are the same. To compute a launch from symbolic
 * sizes and bind its arguments costs the host some microseconds, and a token of 48 layers has 500
 * launches.
 *
 * A recording belongs to a plan, whose buffers it uses, and to the sizes of the run. Launches of
 * attention are computed in each run and compared with the recorded ones; only arguments that
 * differ are bound. If a launch itself differs, the next run is recorded anew. These steps are not
 * recorded: steps on the host, copies and oneDNN's kernels, which are no launches of xemoe's
 * kernels, and steps with an expert cache.
 *
 * Only runs of few rows are recorded: for a prompt the time on the device hides the host's work.
 */
#include <string.h>

#include "plugin/gpu/request_run.h"
#include "transformations/graph/symbols.h"

/* ALIKE: the number of runs with equal sizes before one is recorded, because a recording of sizes
 * that change often is not worth its cost. RECORDED_ROWS: most rows of a recorded run. */
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

/* Starts the recording of the current run. If there is no memory, or the engine cannot record, runs
 * go on without a recording. */
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

/* Drops the recording, so that the next run is recorded: launches of attention have changed, and
 * will stay the same for many runs. */
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

/* Returns whether the launches of a step can be recorded: they are the same in all runs of these
 * sizes (is_steady), or recorded ones can be updated (attention). */
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

/* Runs a recorded step again, and replaces arguments of its recorded launches that have changed.
 * Sets is_stale if a launch itself has changed. */
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
