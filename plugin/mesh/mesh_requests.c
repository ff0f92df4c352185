/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of a mesh: a request of each rank; all of them get the same calls.
 */
#include "plugin/mesh/mesh.h"
#include "plugin/mesh/mesh_check.h"

struct mesh_infer {
    struct xm_infer base; /* first */
    struct xm_mesh *mesh; /* borrowed: base.compiled holds it */
    struct xm_infer *rank[XM_MOST_RANKS];
    struct xm_mesh_check check;
};

static struct mesh_infer *
mesh_of(struct xm_infer *r)
{
    return (struct mesh_infer *)r;
}

static enum xm_status
set_inputs(struct mesh_infer *r, uint32_t input, const struct xm_host_tensor *t,
           struct xm_error *err)
{
    for (uint32_t i = 0; i < r->mesh->n; i++)
        XM_TRY(r->rank[i]->ops->set_input(r->rank[i], input, t, err));
    struct xm_infer *whole = r->check.whole;
    return whole ? whole->ops->set_input(whole, input, t, err) : XM_OK;
}

static enum xm_status
run_rank(uint32_t rank, void *ctx, struct xm_error *err)
{
    struct mesh_infer *r = ctx;
    return r->rank[rank]->ops->infer(r->rank[rank], err);
}

static uint64_t
past_of(uint32_t rank, void *ctx)
{
    const struct mesh_infer *r = ctx;
    return r->rank[rank]->ops->past(r->rank[rank]);
}

static void
shorten_one(struct xm_infer *of, uint64_t past)
{
    if (of->ops->truncate)
        of->ops->truncate(of, past);
    else if (of->ops->past(of) != past)
        of->ops->reset(of);
}

static void
shorten(uint32_t rank, uint64_t past, void *ctx)
{
    shorten_one(((const struct mesh_infer *)ctx)->rank[rank], past);
}

/* After a run that failed: ranks may have failed in different chunks. */
static void
end_failed_run(struct mesh_infer *r)
{
    xm_mesh_level_all(r->mesh, past_of, shorten, r);
    r->check.is_apart = true;
}

/* If an input fails in one process of an MPI job, the others learn it in the run that they begin:
 * agreeing on each input would take an exchange for each. */
static enum xm_status
infer_set_input(struct xm_infer *base, uint32_t input, const struct xm_host_tensor *t,
                struct xm_error *err)
{
    struct mesh_infer *r = mesh_of(base);
    struct xm_error own = {0};
    if (set_inputs(r, input, t, &own) == XM_OK)
        return XM_OK;
    const enum xm_status s = xm_mesh_fail_run(r->mesh, &own, err);
    if (!r->mesh->group)
        end_failed_run(r);
    return s;
}

static enum xm_status
infer_run(struct xm_infer *base, struct xm_error *err)
{
    struct mesh_infer *r = mesh_of(base);
    struct xm_error own = {0};
    const enum xm_status s = xm_mesh_run(r->mesh, run_rank, r, err);
    if (s != XM_OK)
        end_failed_run(r);
    if (s != XM_OK || !r->check.whole)
        return s;
    (void)xm_mesh_check_run(&r->check, r->rank, r->mesh->n, &own);
    return xm_mesh_agree(r->mesh, &own, err);
}

static enum xm_status
infer_output(struct xm_infer *base, uint32_t output, struct xm_host_tensor *t,
             struct xm_error *err)
{
    struct xm_infer *first = mesh_of(base)->rank[0];
    return first->ops->output(first, output, t, err);
}

static enum xm_status
infer_describe_output(struct xm_infer *base, uint32_t output, struct xm_host_tensor *t,
                      struct xm_error *err)
{
    struct xm_infer *first = mesh_of(base)->rank[0];
    return first->ops->describe_output
               ? first->ops->describe_output(first, output, t, err)
               : first->ops->output(first, output, t, err);
}

static void
infer_reset(struct xm_infer *base)
{
    struct mesh_infer *r = mesh_of(base);
    for (uint32_t i = 0; i < r->mesh->n; i++)
        r->rank[i]->ops->reset(r->rank[i]);
    if (r->check.whole)
        r->check.whole->ops->reset(r->check.whole);
    r->check.is_apart = false;
}

static void
infer_truncate(struct xm_infer *base, uint64_t past)
{
    struct mesh_infer *r = mesh_of(base);
    for (uint32_t i = 0; i < r->mesh->n; i++)
        shorten(i, past, r);
    xm_mesh_level_all(r->mesh, past_of, shorten, r);
    if (r->check.whole)
        shorten_one(r->check.whole, r->rank[0]->ops->past(r->rank[0]));
}

static uint64_t
infer_past(const struct xm_infer *base)
{
    const struct xm_infer *first = ((const struct mesh_infer *)base)->rank[0];
    return first->ops->past(first);
}

static void
infer_cancel(struct xm_infer *base)
{
    struct mesh_infer *r = mesh_of(base);
    for (uint32_t i = 0; i < r->mesh->n; i++)
        r->rank[i]->ops->cancel(r->rank[i]);
    if (r->check.whole)
        r->check.whole->ops->cancel(r->check.whole);
}

static void
infer_resume(struct xm_infer *base)
{
    struct mesh_infer *r = mesh_of(base);
    for (uint32_t i = 0; i < r->mesh->n; i++)
        r->rank[i]->ops->resume(r->rank[i]);
    if (r->check.whole)
        r->check.whole->ops->resume(r->check.whole);
}

/* Watches rank 0: the other ranks progress with it. */
static void
infer_watch(struct xm_infer *base, xm_tokens_fn fn, void *ctx)
{
    struct xm_infer *first = mesh_of(base)->rank[0];
    if (first->ops->watch)
        first->ops->watch(first, fn, ctx);
}

void
xm_mesh_sum_stats(struct xm_infer *const *rank, uint32_t n, struct xm_request_stats *out)
{
    *out = (struct xm_request_stats){0};
    for (uint32_t i = 0; i < n; i++) {
        struct xm_request_stats of = {0};
        if (rank[i]->ops->stats)
            rank[i]->ops->stats(rank[i], &of);
        out->activation_bytes += of.activation_bytes;
        out->scratch_bytes += of.scratch_bytes;
        out->io_bytes += of.io_bytes;
        out->kv_bytes += of.kv_bytes;
        out->kernels += of.kernels;
        out->waits += of.waits;
        out->weight_bytes += of.weight_bytes;
        out->multiply_adds += of.multiply_adds;
    }
}

static void
infer_stats(const struct xm_infer *base, struct xm_request_stats *out)
{
    const struct mesh_infer *r = (const struct mesh_infer *)base;
    xm_mesh_sum_stats(r->rank, r->mesh->n, out);
}

static enum xm_status
infer_check(struct xm_infer *base, xm_step_check_fn fn, void *ctx, struct xm_error *err)
{
    struct mesh_infer *r = mesh_of(base);
    struct xm_error own = {0};
    if (!r->mesh->whole)
        return xm_fail(err, XM_INVALID, "the mesh has not kept the whole program");
    (void)xm_mesh_check_open(&r->check, r->mesh->whole, fn, ctx, &own);
    return xm_mesh_agree(r->mesh, &own, err);
}

static void
infer_destroy(struct xm_infer *base)
{
    struct mesh_infer *r = mesh_of(base);
    xm_mesh_check_close(&r->check);
    for (uint32_t i = 0; i < r->mesh->n; i++)
        xm_infer_destroy(r->rank[i]);
    xm_free(r);
}

static const struct xm_infer_ops infer_ops = {
    .set_input = infer_set_input,
    .infer = infer_run,
    .output = infer_output,
    .describe_output = infer_describe_output,
    .reset = infer_reset,
    .truncate = infer_truncate,
    .past = infer_past,
    .cancel = infer_cancel,
    .resume = infer_resume,
    .watch = infer_watch,
    .stats = infer_stats,
    .check = infer_check,
    .destroy = infer_destroy,
};

static enum xm_status
make_ranks(struct mesh_infer *r, struct xm_mesh *m, struct xm_error *err)
{
    if (!r)
        return xm_no_memory(err, "a request");
    r->base.ops = &infer_ops;
    r->mesh = m;
    for (uint32_t i = 0; i < m->n; i++)
        XM_TRY(xm_compiled_create_request(m->rank[i], &r->rank[i], err));
    return XM_OK;
}

enum xm_status
xm_mesh_create_request(struct xm_compiled *c, struct xm_infer **out, struct xm_error *err)
{
    struct mesh_infer *r = xm_calloc(1, sizeof(*r));
    struct xm_error own = {0};
    (void)make_ranks(r, xm_mesh_of(c), &own);
    const enum xm_status s = xm_mesh_agree(xm_mesh_of(c), &own, err);
    if (s == XM_OK)
        *out = &r->base;
    else if (r)
        infer_destroy(&r->base);
    return s;
}
