/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and batches of a mesh: a sequence or batch of each rank. All ranks get the same calls,
 * so they make the same decisions about pages (reused prefixes, released windows).
 */
#include "plugin/mesh/mesh.h"

/* ---- sequences ------------------------------------------------------------------------ */

struct mesh_sequence {
    struct xm_sequence base; /* first */
    uint32_t n;
    struct xm_sequence *rank[XM_MOST_RANKS];
};

static struct mesh_sequence *
sequence_of(struct xm_sequence *s)
{
    return (struct mesh_sequence *)s;
}

static uint64_t
sequence_past(const struct xm_sequence *base)
{
    const struct xm_sequence *first = ((const struct mesh_sequence *)base)->rank[0];
    return first->ops->past(first);
}

static uint64_t
past_of(uint32_t rank, void *ctx)
{
    const struct mesh_sequence *s = ctx;
    return s->rank[rank]->ops->past(s->rank[rank]);
}

static void
shorten(uint32_t rank, uint64_t past, void *ctx)
{
    const struct mesh_sequence *s = ctx;
    s->rank[rank]->ops->truncate(s->rank[rank], past);
}

static void
level(struct mesh_sequence *s)
{
    xm_mesh_level_all(xm_mesh_of(s->base.compiled), past_of, shorten, s);
}

static void
sequence_truncate(struct xm_sequence *base, uint64_t past)
{
    struct mesh_sequence *s = sequence_of(base);
    for (uint32_t i = 0; i < s->n; i++)
        shorten(i, past, s);
    level(s);
}

static enum xm_status
sequence_match(struct xm_sequence *base, const int32_t *tokens, uint64_t n,
               struct xm_error *err)
{
    struct mesh_sequence *s = sequence_of(base);
    struct xm_error own = {0};
    enum xm_status status = XM_OK;
    for (uint32_t i = 0; i < s->n && status == XM_OK; i++)
        status = s->rank[i]->ops->match(s->rank[i], tokens, n, &own);
    level(s);
    return xm_mesh_agree(xm_mesh_of(base->compiled), &own, err);
}

static void
sequence_destroy(struct xm_sequence *base)
{
    struct mesh_sequence *s = sequence_of(base);
    for (uint32_t i = 0; i < s->n; i++)
        xm_compiled_destroy_sequence(s->rank[i]);
    xm_free(s);
}

static enum xm_status sequence_fork(struct xm_sequence *base, struct xm_sequence **out,
                                    struct xm_error *err);

static enum xm_status
sequence_identify(const struct xm_sequence *base, struct xm_strbuf *out,
                  struct xm_error *err)
{
    (void)base;
    (void)out;
    return xm_fail(
        err, XM_UNSUPPORTED,
        "in a mesh each device has a part of the cache, and parts are not saved");
}

/* Sequences of a mesh cannot be saved: identify fails with the reason, and then no other member is
 * called. */
static const struct xm_sequence_file_ops no_files = {.identify = sequence_identify};

static const struct xm_sequence_ops sequence_ops = {
    .fork = sequence_fork,
    .past = sequence_past,
    .truncate = sequence_truncate,
    .match = sequence_match,
    .destroy = sequence_destroy,
    .file = &no_files,
};

static enum xm_status
make_ranks(const struct xm_mesh *m, const struct mesh_sequence *from,
           struct mesh_sequence *s, struct xm_error *err)
{
    if (!s)
        return xm_no_memory(err, "a sequence");
    s->base.ops = &sequence_ops;
    s->n = m->n;
    for (uint32_t i = 0; i < m->n; i++)
        XM_TRY(from ? xm_compiled_fork_sequence(from->rank[i], &s->rank[i], err)
                    : xm_compiled_create_sequence(m->rank[i], &s->rank[i], err));
    return XM_OK;
}

/* Creates a sequence or, if `from` is not NULL, a fork of it: in all processes or in none, because
 * those that have it would go on with it. */
static enum xm_status
make_sequence(struct xm_mesh *m, const struct mesh_sequence *from,
              struct xm_sequence **out, struct xm_error *err)
{
    struct mesh_sequence *s = xm_calloc(1, sizeof(*s));
    struct xm_error own = {0};
    (void)make_ranks(m, from, s, &own);
    const enum xm_status status = xm_mesh_agree(m, &own, err);
    if (status == XM_OK)
        *out = &s->base;
    else if (s)
        sequence_destroy(&s->base);
    return status;
}

static enum xm_status
sequence_fork(struct xm_sequence *base, struct xm_sequence **out, struct xm_error *err)
{
    return make_sequence(xm_mesh_of(base->compiled), sequence_of(base), out, err);
}

enum xm_status
xm_mesh_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                        struct xm_error *err)
{
    return make_sequence(xm_mesh_of(c), NULL, out, err);
}

/* ---- batches -------------------------------------------------------------------------- */

struct mesh_batch {
    struct xm_batch base;    /* first */
    struct xm_infer control; /* base.control: cancels and watches the ranks' batches */
    struct xm_mesh *mesh;    /* borrowed: base.compiled holds it */
    struct xm_batch *rank[XM_MOST_RANKS];
    struct xm_batch_row *rows; /* owned; [rank][capacity] rows of the ranks' batches */
    uint32_t capacity, n_rows;
};

static struct mesh_batch *
batch_of_control(struct xm_infer *r)
{
    return (struct mesh_batch *)((char *)r - offsetof(struct mesh_batch, control));
}

static enum xm_status
set_rows(struct mesh_batch *b, const struct xm_batch_row *rows, uint32_t n,
         struct xm_error *err)
{
    if (n > b->capacity) {
        void *list = xm_realloc(b->rows, (size_t)n * b->mesh->n * sizeof(*b->rows));
        if (!list)
            return xm_no_memory(err, "a batch");
        b->rows = list;
        b->capacity = n;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].sequence->compiled != b->base.compiled)
            return xm_fail(err, XM_INVALID,
                           "row %u of the batch: the sequence is another model's", i);
        for (uint32_t r = 0; r < b->mesh->n; r++) {
            struct xm_batch_row *row = &b->rows[(size_t)r * b->capacity + i];
            *row = rows[i];
            row->sequence = sequence_of(rows[i].sequence)->rank[r];
        }
    }
    b->n_rows = n;
    return XM_OK;
}

static enum xm_status
run_rank(uint32_t rank, void *ctx, struct xm_error *err)
{
    struct mesh_batch *b = ctx;
    return b->rank[rank]->ops->run(b->rank[rank], b->rows + (size_t)rank * b->capacity,
                                   b->n_rows, err);
}

/* Runs the batches of all ranks. If a rank fails, ranks that had ended before have longer
 * sequences: so all sequences of this mesh are made equally long again. */
static enum xm_status
batch_run(struct xm_batch *base, const struct xm_batch_row *rows, uint32_t n,
          struct xm_error *err)
{
    struct mesh_batch *b = (struct mesh_batch *)base;
    struct xm_error own = {0};
    base->n_rows = 0;
    const enum xm_status s = set_rows(b, rows, n, &own) == XM_OK
                                 ? xm_mesh_run(b->mesh, run_rank, b, err)
                                 : xm_mesh_fail_run(b->mesh, &own, err);
    for (uint32_t i = 0; i < n && s != XM_OK; i++) {
        if (rows[i].sequence->compiled == base->compiled)
            level(sequence_of(rows[i].sequence));
    }
    base->n_rows = s == XM_OK ? n : 0;
    return s;
}

static const float *
batch_logits(const struct xm_batch *base, uint32_t i, uint64_t *rows,
             uint64_t *vocabulary)
{
    const struct xm_batch *first = ((const struct mesh_batch *)base)->rank[0];
    return first->ops->logits(first, i, rows, vocabulary);
}

static void
batch_destroy(struct xm_batch *base)
{
    struct mesh_batch *b = (struct mesh_batch *)base;
    for (uint32_t i = 0; i < b->mesh->n; i++)
        xm_compiled_destroy_batch(b->rank[i]);
    xm_free(b->rows);
    xm_free(b);
}

static const struct xm_batch_ops batch_ops = {
    .run = batch_run,
    .logits = batch_logits,
    .destroy = batch_destroy,
};

/* ---- a batch's control ---------------------------------------------------------------- */

static void
control_cancel(struct xm_infer *r)
{
    struct mesh_batch *b = batch_of_control(r);
    for (uint32_t i = 0; i < b->mesh->n; i++)
        b->rank[i]->control->ops->cancel(b->rank[i]->control);
}

static void
control_resume(struct xm_infer *r)
{
    struct mesh_batch *b = batch_of_control(r);
    for (uint32_t i = 0; i < b->mesh->n; i++)
        b->rank[i]->control->ops->resume(b->rank[i]->control);
}

static void
control_watch(struct xm_infer *r, xm_tokens_fn fn, void *ctx)
{
    struct xm_infer *first = batch_of_control(r)->rank[0]->control;
    if (first->ops->watch)
        first->ops->watch(first, fn, ctx);
}

static void
control_stats(const struct xm_infer *r, struct xm_request_stats *out)
{
    const struct mesh_batch *b = batch_of_control((struct xm_infer *)r);
    struct xm_infer *of[XM_MOST_RANKS];
    for (uint32_t i = 0; i < b->mesh->n; i++)
        of[i] = b->rank[i]->control;
    xm_mesh_sum_stats(of, b->mesh->n, out);
}

/* Refuses a check of steps: only requests of a mesh can be checked. */
static enum xm_status
control_check(struct xm_infer *r, xm_step_check_fn fn, void *ctx, struct xm_error *err)
{
    (void)r;
    (void)fn;
    (void)ctx;
    return xm_fail(err, XM_UNSUPPORTED, "a mesh's batches are not checked");
}

static const struct xm_infer_ops control_ops = {
    .cancel = control_cancel,
    .resume = control_resume,
    .watch = control_watch,
    .stats = control_stats,
    .check = control_check,
};

static enum xm_status
make_rank_batches(struct mesh_batch *b, struct xm_mesh *m, struct xm_error *err)
{
    if (!b)
        return xm_no_memory(err, "a batch");
    b->base.ops = &batch_ops;
    b->mesh = m;
    b->control.ops = &control_ops;
    b->base.control = &b->control;
    for (uint32_t i = 0; i < b->mesh->n; i++) {
        XM_TRY(xm_compiled_create_batch(b->mesh->rank[i], &b->rank[i], err));
        const struct xm_batch *of = b->rank[i];
        b->base.chunk = i && b->base.chunk < of->chunk ? b->base.chunk : of->chunk;
        b->base.page = i && b->base.page > of->page ? b->base.page : of->page;
    }
    return XM_OK;
}

enum xm_status
xm_mesh_create_batch(struct xm_compiled *c, struct xm_batch **out, struct xm_error *err)
{
    struct mesh_batch *b = xm_calloc(1, sizeof(*b));
    struct xm_error own = {0};
    (void)make_rank_batches(b, xm_mesh_of(c), &own);
    const enum xm_status s = xm_mesh_agree(xm_mesh_of(c), &own, err);
    if (s == XM_OK)
        *out = &b->base;
    else if (b)
        batch_destroy(&b->base);
    return s;
}
