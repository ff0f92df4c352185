/* SPDX-License-Identifier: Apache-2.0
 *
 * Device times (PERF_COUNT, XM_DEBUG=times). The queue keeps the events of launches since the last
 * wait; at a wait their times are added to sums by label and kernel, so that a long run needs no
 * more memory than a short one. A trace also keeps the last XM_TRACE_LAUNCHES launches one by
 * one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/label_times.h"
#include "runtime/ocl/ocl.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

/* events between two waits; further launches are not measured */
enum { MAX_EVENTS = 1 << 16 };

struct ocl_event {
    /* a marker before the commands to measure; NULL: `event` is the launch */
    cl_event since;
    cl_event event;
    struct ocl_launch_id id;
};

struct ocl_sum {
    uint64_t runs, ns, unmeasured;
};

struct ocl_total {
    struct ocl_launch_id id;
    struct ocl_sum now, before; /* sums since the last reset, and before it */
};

/* ---- sums ---------------------------------------------------------------------------- */

/* Compares pointers: all launches of a kernel have the same texts. */
static bool
is_same(const struct ocl_launch_id *a, const struct ocl_launch_id *b)
{
    return a->label == b->label && a->name == b->name && a->defines == b->defines;
}

/* Finds or adds the total of a launch; NULL: no memory. Runs repeat their launches in the same
 * order, so the search begins behind the total that was found last. */
static struct ocl_total *
total_of(struct ocl_times *t, const struct ocl_launch_id *id)
{
    for (size_t i = 0; i < t->n_totals; i++) {
        const size_t at = (t->found + 1 + i) % t->n_totals;
        if (!is_same(&t->totals[at].id, id))
            continue;
        t->found = at;
        return &t->totals[at];
    }
    struct ocl_total *list =
        xm_grow(t->totals, &t->totals_capacity, t->n_totals + 1, sizeof(*list));
    if (!list) {
        t->n_lost++;
        return NULL;
    }
    t->totals = list;
    t->found = t->n_totals++;
    t->totals[t->found] = (struct ocl_total){.id = *id};
    return &t->totals[t->found];
}

static void
count_unmeasured(struct ocl_times *t, const struct ocl_launch_id *id)
{
    struct ocl_total *total = total_of(t, id);
    t->n_missing++;
    if (!total)
        return;
    total->now.runs++;
    total->now.unmeasured++;
}

static void
count(struct ocl_times *t, const struct xm_launch_span *span,
      const struct ocl_launch_id *id)
{
    struct ocl_total *total = total_of(t, id);
    if (t->trace)
        t->trace[t->n_traced++ % XM_TRACE_LAUNCHES] = *span;
    if (t->shared)
        xm_label_times_add_ns(t->shared, id->label, span->end - span->start);
    if (!total)
        return;
    total->now.runs++;
    total->now.ns += span->end - span->start;
}

/* ---- events -------------------------------------------------------------------------- */

bool
xm_ocl_times_reserve(struct ocl_times *t, const struct ocl_launch_id *id)
{
    void *list = t->n_events < MAX_EVENTS ? xm_grow(t->events, &t->events_capacity,
                                                    t->n_events + 1, sizeof(*t->events))
                                          : NULL;
    if (!list) {
        count_unmeasured(t, id);
        return false;
    }
    t->events = list;
    return true;
}

void
xm_ocl_times_add(struct ocl_times *t, cl_event since, cl_event event,
                 const struct ocl_launch_id *id)
{
    t->events[t->n_events++] = (struct ocl_event){since, event, *id};
}

void
xm_ocl_times_add_host(struct ocl_times *t, double start_ns, double end_ns,
                      const struct ocl_launch_id *id)
{
    const uint64_t start = (uint64_t)(start_ns - t->host_ns),
                   ns = (uint64_t)(end_ns - start_ns);
    const struct xm_launch_span span = {id->label, id->name, start, start, start + ns};
    count(t, &span, id);
}

static cl_int
time_of(cl_event event, cl_profiling_info what, uint64_t *out)
{
    cl_ulong ns = 0;
    const cl_int code = clGetEventProfilingInfo(event, what, sizeof(ns), &ns, NULL);
    *out = ns;
    return code;
}

/* Reads the times of a launch. With `since`, a marker, the measured commands start when the marker
 * ends. */
static cl_int
span_of(const struct ocl_event *e, struct xm_launch_span *out)
{
    const cl_event first = e->since ? e->since : e->event;
    *out = (struct xm_launch_span){.label = e->id.label, .kernel = e->id.name};
    cl_int code = time_of(first, CL_PROFILING_COMMAND_QUEUED, &out->queued);
    if (code == CL_SUCCESS)
        code = time_of(first,
                       e->since ? CL_PROFILING_COMMAND_END : CL_PROFILING_COMMAND_START,
                       &out->start);
    if (code == CL_SUCCESS)
        code = time_of(e->event, CL_PROFILING_COMMAND_END, &out->end);
    if (out->end < out->start)
        out->end = out->start;
    return code;
}

void
xm_ocl_times_sum(struct ocl_times *t)
{
    for (size_t i = 0; i < t->n_events; i++) {
        const struct ocl_event *e = &t->events[i];
        struct xm_launch_span span;
        const cl_int code = span_of(e, &span);
        if (code == CL_SUCCESS) {
            count(t, &span, &e->id);
        } else {
            count_unmeasured(t, &e->id);
            t->n_refused++;
            t->refusal = code;
        }
        if (e->since)
            clReleaseEvent(e->since);
        clReleaseEvent(e->event);
    }
    t->n_events = 0;
}

/* ---- handing out ----------------------------------------------------------------------- */

enum xm_status
xm_ocl_times_give(const struct ocl_times *t, xm_profile_fn fn, void *ctx,
                  struct xm_error *err)
{
    for (size_t i = 0; i < t->n_totals; i++) {
        const struct ocl_total *total = &t->totals[i];
        const struct xm_launch_times times = {total->id.label, total->id.name,
                                              total->now.runs, total->now.ns,
                                              total->now.unmeasured};
        if (times.runs)
            fn(ctx, &times);
    }
    if (t->n_lost)
        return xm_no_memory(err, "the times of %" PRIu64 " runs", t->n_lost);
    if (!t->n_refused)
        return XM_OK;
    return xm_ocl_fail(err, t->refusal, "clGetEventProfilingInfo",
                       "kernel runs whose times the driver does not report: %" PRIu64,
                       t->n_refused);
}

static void
add(struct ocl_sum *a, const struct ocl_sum *b)
{
    a->runs += b->runs;
    a->ns += b->ns;
    a->unmeasured += b->unmeasured;
}

void
xm_ocl_times_reset(struct ocl_times *t)
{
    for (size_t i = 0; i < t->n_totals; i++) {
        add(&t->totals[i].before, &t->totals[i].now);
        t->totals[i].now = (struct ocl_sum){0};
    }
    t->n_refused = t->n_lost = 0;
}

enum xm_status
xm_ocl_times_begin_trace(struct ocl_times *t, cl_event marker, double host_ns,
                         struct xm_error *err)
{
    uint64_t device_ns = 0;
    const cl_int code = time_of(marker, CL_PROFILING_COMMAND_END, &device_ns);
    if (code != CL_SUCCESS)
        return xm_ocl_fail(err, code, "clGetEventProfilingInfo", "a marker");
    if (!t->trace)
        t->trace = xm_malloc(XM_TRACE_LAUNCHES * sizeof(*t->trace));
    if (!t->trace)
        return xm_no_memory(err, "a trace of %d launches", XM_TRACE_LAUNCHES);
    t->n_traced = t->n_missing = 0;
    t->host_ns = host_ns - (double)device_ns;
    return XM_OK;
}

void
xm_ocl_times_trace(const struct ocl_times *t, xm_trace_fn fn, void *ctx,
                   uint64_t *dropped)
{
    const uint64_t kept =
        t->n_traced < XM_TRACE_LAUNCHES ? t->n_traced : XM_TRACE_LAUNCHES;
    const uint64_t overwritten = t->n_traced - kept;
    *dropped = overwritten + t->n_missing;
    for (uint64_t i = overwritten; t->trace && i < t->n_traced; i++)
        fn(ctx, &t->trace[i % XM_TRACE_LAUNCHES]);
}

/* ---- XM_DEBUG=times -------------------------------------------------------------------- */

static int
by_kernel(const void *a, const void *b)
{
    const struct ocl_total *x = a, *y = b;
    const int order = strcmp(x->id.name, y->id.name);
    return order ? order : strcmp(x->id.defines, y->id.defines);
}

static int
by_time(const void *a, const void *b)
{
    const struct ocl_total *x = a, *y = b;
    return (x->before.ns < y->before.ns) - (x->before.ns > y->before.ns);
}

/* Sums the times since the queue was made by kernel, whatever the label. This destroys the totals
 * by label, which are no longer needed. */
static void
merge(struct ocl_times *t)
{
    size_t n = 0;
    xm_ocl_times_reset(t);
    qsort(t->totals, t->n_totals, sizeof(*t->totals), by_kernel);
    for (size_t i = 0; i < t->n_totals; i++) {
        if (n && by_kernel(&t->totals[n - 1], &t->totals[i]) == 0)
            add(&t->totals[n - 1].before, &t->totals[i].before);
        else
            t->totals[n++] = t->totals[i];
    }
    t->n_totals = n;
    qsort(t->totals, n, sizeof(*t->totals), by_time);
}

static void
print(struct ocl_times *t)
{
    const uint64_t refused = t->n_refused;
    uint64_t all = 0;
    if (t->n_totals)
        merge(t);
    for (size_t i = 0; i < t->n_totals; i++)
        all += t->totals[i].before.ns;
    for (size_t i = 0; i < t->n_totals; i++) {
        const struct ocl_sum *k = &t->totals[i].before;
        const uint64_t measured = k->runs - k->unmeasured;
        xm_debug(XM_DEBUG_TIMES,
                 "%.3f ms (%.1f %%), %" PRIu64 " runs of %.1f us: %s (%s)",
                 1e-6 * (double)k->ns, all ? 100.0 * (double)k->ns / (double)all : 0.0,
                 k->runs, measured ? 1e-3 * (double)k->ns / (double)measured : 0.0,
                 t->totals[i].id.name, t->totals[i].id.defines);
    }
    if (refused)
        xm_debug(XM_DEBUG_TIMES,
                 "%s: the driver reports no times of %" PRIu64 " kernel runs",
                 xm_ocl_error_text(t->refusal), refused);
}

void
xm_ocl_times_end(struct ocl_times *t)
{
    xm_ocl_times_sum(t);
    if (xm_debug_on(XM_DEBUG_TIMES))
        print(t);
    xm_free(t->events);
    xm_free(t->totals);
    xm_free(t->trace);
}
