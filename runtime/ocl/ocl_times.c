/* SPDX-License-Identifier: Apache-2.0
 *
 * Device times of kernels (PERF_COUNT, XM_DEBUG=times): events since the last wait, and their sums
 * by kernel before that, so that a long run takes no more memory than a short one.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

enum { MAX_EVENTS = 1 << 16 }; /* between two waits; what is more goes unmeasured */

struct ocl_event {
    cl_event event;
    const struct xm_kernel *kernel;
};

struct ocl_total {
    const struct xm_kernel *kernel;
    uint64_t runs, ns;
};

bool
xm_ocl_measures(const struct xm_engine *e)
{
    return e->config.profiling || xm_debug_on(XM_DEBUG_TIMES);
}

/* Room for one more of `bytes` behind n; false: no memory. */
static bool
grow(void **list, size_t n, size_t *capacity, size_t bytes)
{
    if (n < *capacity)
        return true;
    const size_t more = *capacity ? 2 * *capacity : 256;
    void *grown = xm_realloc(*list, more * bytes);
    if (!grown)
        return false;
    *list = grown;
    *capacity = more;
    return true;
}

bool
xm_ocl_times_reserve(struct ocl_times *t)
{
    void *list = t->events;
    const bool ok = t->n_events < MAX_EVENTS &&
                    grow(&list, t->n_events, &t->events_capacity, sizeof(*t->events));
    t->events = list;
    return ok;
}

void
xm_ocl_times_add(struct ocl_times *t, cl_event event, const struct xm_kernel *kernel)
{
    t->events[t->n_events++] = (struct ocl_event){event, kernel};
}

/* NULL: no memory, the launch is not counted. */
static struct ocl_total *
total_of(struct ocl_times *t, const struct xm_kernel *kernel)
{
    for (size_t i = 0; i < t->n_totals; i++)
        if (t->totals[i].kernel == kernel)
            return &t->totals[i];
    void *list = t->totals;
    const bool ok = grow(&list, t->n_totals, &t->totals_capacity, sizeof(*t->totals));
    t->totals = list;
    if (!ok)
        return NULL;
    t->totals[t->n_totals] = (struct ocl_total){.kernel = kernel};
    return &t->totals[t->n_totals++];
}

static void
add_event(struct ocl_times *t, const struct ocl_event *e)
{
    cl_ulong start = 0, end = 0;
    cl_int code = clGetEventProfilingInfo(e->event, CL_PROFILING_COMMAND_START,
                                          sizeof(start), &start, NULL);
    if (code == CL_SUCCESS)
        code = clGetEventProfilingInfo(e->event, CL_PROFILING_COMMAND_END, sizeof(end),
                                       &end, NULL);
    if (code != CL_SUCCESS) {
        t->n_refused++;
        t->refusal = code;
        return;
    }
    struct ocl_total *total = total_of(t, e->kernel);
    if (!total)
        return;
    total->runs++;
    total->ns += end > start ? end - start : 0;
}

void
xm_ocl_times_sum(struct ocl_times *t)
{
    for (size_t i = 0; i < t->n_events; i++) {
        add_event(t, &t->events[i]);
        clReleaseEvent(t->events[i].event);
    }
    t->n_events = 0;
}

enum xm_status
xm_ocl_times_take(struct ocl_times *t, xm_profile_fn fn, void *ctx, struct xm_error *err)
{
    const uint64_t refused = t->n_refused;
    for (size_t i = 0; i < t->n_totals; i++)
        fn(ctx, t->totals[i].kernel->name, t->totals[i].runs, t->totals[i].ns);
    t->n_totals = 0;
    t->n_refused = 0;
    if (!refused)
        return XM_OK;
    return xm_ocl_fail(err, t->refusal, "clGetEventProfilingInfo",
                       "runs of kernels without a time: %" PRIu64, refused);
}

static int
by_time(const void *a, const void *b)
{
    const struct ocl_total *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void
print(struct ocl_times *t)
{
    uint64_t all = 0;
    for (size_t i = 0; i < t->n_totals; i++)
        all += t->totals[i].ns;
    if (t->n_totals)
        qsort(t->totals, t->n_totals, sizeof(*t->totals), by_time);
    for (size_t i = 0; i < t->n_totals; i++) {
        const struct ocl_total *k = &t->totals[i];
        xm_debug(XM_DEBUG_TIMES,
                 "%.3f ms (%.1f %%), %" PRIu64 " runs of %.1f us: %s (%s)",
                 1e-6 * (double)k->ns, all ? 100.0 * (double)k->ns / (double)all : 0.0,
                 k->runs, 1e-3 * (double)k->ns / (double)k->runs, k->kernel->name,
                 k->kernel->defines);
    }
    if (t->n_refused)
        xm_debug(XM_DEBUG_TIMES,
                 "%s: the driver does not say the times of %" PRIu64 " runs",
                 xm_ocl_error_text(t->refusal), t->n_refused);
}

void
xm_ocl_times_end(struct ocl_times *t)
{
    xm_ocl_times_sum(t);
    if (xm_debug_on(XM_DEBUG_TIMES))
        print(t);
    xm_free(t->events);
    xm_free(t->totals);
}
