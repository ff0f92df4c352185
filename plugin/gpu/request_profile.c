/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/request_profile.h"

#include <stdlib.h>

#include "plugin/gpu/program_exec_graph.h"
#include "plugin/gpu/request_run.h"
#include "plugin/lower/step_work.h"
#include "runtime/label_times.h"

void
xm_request_count_step(struct xm_request *r, uint32_t i)
{
    const struct xm_step *s = &r->program->steps[i];
    struct xm_step_work work;
    xm_step_find_work(r->program, s, &r->bindings,
                      s->kind == XM_STEP_ATTENTION ? xm_kv_tables_run(r->tables) : NULL,
                      &work);
    r->sums[i].runs++;
    xm_label_times_add_run(r->program->step_times, i);
    r->sums[i].bytes += xm_step_work_bytes(&work);
    r->sums[i].multiply_adds += work.multiply_adds;
    r->sums[i].stored_bytes += work.weight_bytes + work.cache_bytes;
}

const struct xm_step_sum *
xm_request_step_sum(const struct xm_request *r, uint32_t i)
{
    return &r->sums[i];
}

/* ---- rows ---------------------------------------------------------------------------- */

/* The queue's times, which are then sorted by step. */
struct times {
    struct xm_launch_times *list;
    size_t n, capacity;
    bool failed;
};

static void
add_times(void *ctx, const struct xm_launch_times *one)
{
    struct times *t = ctx;
    struct xm_launch_times *list =
        xm_grow(t->list, &t->capacity, t->n + 1, sizeof(*list));
    t->failed |= !list;
    if (!list)
        return;
    t->list = list;
    t->list[t->n++] = *one;
}

/* Orders by step; the kernels of a step by time, the longest first. */
static int
by_step(const void *a, const void *b)
{
    const struct xm_launch_times *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static struct xm_profile_row
row_of_step(const struct xm_request *r, uint32_t i)
{
    static const char *const kinds[] = {[XM_STEP_PRIMITIVE] = "primitive",
                                        [XM_STEP_ATTENTION] = "attention",
                                        [XM_STEP_COPY] = "copy",
                                        [XM_STEP_HOST] = "host",
                                        [XM_STEP_COLLECTIVE] = "collective"};
    if (i >= r->program->n_steps)
        return (struct xm_profile_row){.step = XM_PROFILE_NO_STEP,
                                       .kind = "none",
                                       .op = "between steps",
                                       .name = "",
                                       .type = "",
                                       .precision = "",
                                       .kernel = ""};
    const struct xm_step *s = &r->program->steps[i];
    const struct xm_step_sum sum = r->sums ? r->sums[i] : (struct xm_step_sum){0};
    return (struct xm_profile_row){.step = i,
                                   .kind = kinds[s->kind],
                                   .op = s->op,
                                   .name = s->name,
                                   .type = xm_layer_type(s->op, s->node),
                                   .precision = xm_step_precision(r->program, s),
                                   .kernel = "",
                                   .on_host = s->kind == XM_STEP_HOST,
                                   .step_runs = sum.runs,
                                   .bytes = sum.bytes,
                                   .multiply_adds = sum.multiply_adds};
}

/* Calls fn for the kernels with this label (a step), which begin at list[at]; a step without
 * kernels gets one row. Returns the index of the next label's first kernel. */
static size_t
give_rows(const struct xm_request *r, uint32_t label, const struct times *t, size_t at,
          xm_profile_row_fn fn, void *ctx)
{
    struct xm_profile_row row = row_of_step(r, label);
    const size_t first = at;
    for (; at < t->n && t->list[at].label == label; at++) {
        const struct xm_launch_times *one = &t->list[at];
        row.kernel = one->kernel;
        row.runs = one->runs;
        row.ns = one->ns;
        row.unmeasured = one->unmeasured;
        fn(ctx, &row);
        row.bytes = row.multiply_adds = 0;
    }
    if (at == first && label != XM_NO_LABEL)
        fn(ctx, &row);
    return at;
}

bool
xm_request_is_measured(const struct xm_request *r)
{
    return r->program->config.profiling;
}

static enum xm_status
check_is_measured(const struct xm_request *r, struct xm_error *err)
{
    return xm_request_is_measured(r)
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "profiling data was not collected: compile the model with "
                         "PERF_COUNT=YES (ov::enable_profiling)");
}

enum xm_status
xm_request_profile(struct xm_request *r, xm_profile_row_fn fn, void *ctx,
                   struct xm_error *err)
{
    struct times t = {0};
    size_t at = 0;
    XM_TRY(check_is_measured(r, err));
    enum xm_status s = xm_queue_profile(r->queue, add_times, &t, err);
    if (t.failed)
        s = xm_no_memory(err, "a profile");
    if (t.n)
        qsort(t.list, t.n, sizeof(*t.list), by_step);
    for (uint32_t i = 0; i < r->program->n_steps && !t.failed; i++)
        at = give_rows(r, i, &t, at, fn, ctx);
    if (!t.failed)
        give_rows(r, XM_NO_LABEL, &t, at, fn, ctx);
    xm_free(t.list);
    return s;
}

void
xm_request_name_steps(const struct xm_request *r, xm_profile_row_fn fn, void *ctx)
{
    for (uint32_t i = 0; i < r->program->n_steps; i++) {
        const struct xm_profile_row row = row_of_step(r, i);
        fn(ctx, &row);
    }
}

void
xm_request_reset_profile(struct xm_request *r)
{
    xm_queue_reset_profile(r->queue);
    for (uint32_t i = 0; r->sums && i < r->program->n_steps; i++)
        r->sums[i] = (struct xm_step_sum){0};
}

/* ---- trace --------------------------------------------------------------------------- */

struct trace {
    const struct xm_request *request;
    xm_trace_row_fn fn;
    void *ctx;
};

static void
give_span(void *ctx, const struct xm_launch_span *span)
{
    const struct trace *t = ctx;
    const struct xm_profile_row step = row_of_step(t->request, span->label);
    const struct xm_trace_row row = {.step = step.step,
                                     .op = step.op,
                                     .name = step.name,
                                     .kernel = span->kernel,
                                     .on_host = step.on_host,
                                     .queued = span->queued,
                                     .start = span->start,
                                     .end = span->end};
    t->fn(t->ctx, &row);
}

enum xm_status
xm_request_begin_trace(struct xm_request *r, struct xm_error *err)
{
    XM_TRY(check_is_measured(r, err));
    return xm_queue_begin_trace(r->queue, err);
}

enum xm_status
xm_request_trace(struct xm_request *r, xm_trace_row_fn fn, void *ctx, uint64_t *dropped,
                 struct xm_error *err)
{
    struct trace t = {r, fn, ctx};
    XM_TRY(check_is_measured(r, err));
    return xm_queue_trace(r->queue, give_span, &t, dropped, err);
}
