/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of a queue. Queues and engines that measure nothing are handled here, so that
 * callers and implementations need not ask. */
#include "runtime/engine_ops.h"

/* The callbacks for measurements; NULL: the queue does not measure. */
static const struct xm_measuring_ops *
ops_of(const struct xm_queue *q)
{
    return q->measures ? q->engine->ops->measuring : NULL;
}

void
xm_queue_label(struct xm_queue *q, uint32_t label)
{
    q->label = label;
}

bool
xm_queue_measures(const struct xm_queue *q)
{
    return q->measures;
}

enum xm_status
xm_queue_profile(struct xm_queue *q, xm_profile_fn fn, void *ctx, struct xm_error *err)
{
    if (!ops_of(q) || !q->engine->config.profiling)
        return XM_OK;
    XM_TRY(xm_queue_finish(q, err));
    return ops_of(q)->profile(q, fn, ctx, err);
}

void
xm_queue_reset_profile(struct xm_queue *q)
{
    if (ops_of(q))
        ops_of(q)->reset_profile(q);
}

void
xm_queue_share_times(struct xm_queue *q, struct xm_label_times *t)
{
    if (ops_of(q))
        ops_of(q)->share_times(q, t);
}

enum xm_status
xm_queue_begin_trace(struct xm_queue *q, struct xm_error *err)
{
    if (!ops_of(q))
        return xm_fail(
            err, XM_INVALID,
            "there is no trace: the queue does not measure its launches (PERF_COUNT)");
    XM_TRY(xm_queue_finish(q, err));
    return ops_of(q)->begin_trace(q, err);
}

enum xm_status
xm_queue_trace(struct xm_queue *q, xm_trace_fn fn, void *ctx, uint64_t *dropped,
               struct xm_error *err)
{
    *dropped = 0;
    if (!ops_of(q))
        return XM_OK;
    XM_TRY(xm_queue_finish(q, err));
    ops_of(q)->trace(q, fn, ctx, dropped);
    return XM_OK;
}

void
xm_queue_add_host(struct xm_queue *q, const char *name, double start, double end)
{
    if (ops_of(q))
        ops_of(q)->add_host(q, name, start, end);
}

void
xm_queue_begin_native(struct xm_queue *q)
{
    if (ops_of(q))
        ops_of(q)->begin_native(q);
}

void
xm_queue_end_native(struct xm_queue *q, const char *name)
{
    if (ops_of(q))
        ops_of(q)->end_native(q, name);
}
