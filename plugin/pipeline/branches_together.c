/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches as sequences of one batch.
 */
#include "plugin/pipeline/branches.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"

struct together {
    struct xm_branches base; /* first */
    struct xm_compiled *compiled;
    struct xm_batch *batch;
    struct xm_sequence **sequences; /* owned, [n]; NULL: it was moved to a new branch */
    size_t n;
};

static struct together *
self(const struct xm_branches *b)
{
    return (struct together *)(uintptr_t)b;
}

static const float *
logits(const struct xm_branches *b, size_t i, uint64_t *vocabulary)
{
    uint64_t rows;
    const struct xm_batch *batch = self(b)->batch;
    const float *first = batch->ops->logits(batch, (uint32_t)i, &rows, vocabulary);
    return first + (rows - 1) * *vocabulary;
}

static void
drop(struct xm_sequence **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        xm_compiled_destroy_sequence(list[i]);
    xm_free(list);
}

static void
replace(struct together *t, struct xm_sequence **list, size_t n)
{
    drop(t->sequences, t->n);
    t->sequences = list;
    t->n = n;
}

static enum xm_status
run(struct together *t, const struct xm_batch_row *rows, struct xm_error *err)
{
    uint64_t vocabulary;
    XM_TRY(t->batch->ops->run(t->batch, rows, (uint32_t)t->n, err));
    for (size_t i = 0; i < t->n && !xm_dry_run(); i++) {
        const float *row = logits(&t->base, i, &vocabulary);
        const struct xm_sequence *s = t->sequences[i];
        XM_TRY(xm_logits_check(t->compiled, row, vocabulary, s->ops->past(s) - 1, err));
    }
    return XM_OK;
}

static enum xm_status
begin(struct xm_branches *b, const int32_t *prompt, size_t n, uint64_t *reused,
      struct xm_error *err)
{
    struct together *t = self(b);
    struct xm_sequence **one = xm_calloc(1, sizeof(struct xm_sequence *));
    if (!one)
        return xm_no_memory(err, "a branch");
    replace(t, one, 1);
    XM_TRY(xm_compiled_create_sequence(t->compiled, one, err));
    XM_TRY(one[0]->ops->match(one[0], prompt, n, err));
    *reused = one[0]->ops->past(one[0]);
    const struct xm_batch_row row = {one[0], prompt + *reused, n - *reused, 1};
    return run(t, &row, err);
}

/* The first child of a branch takes over its sequence; further children fork the first one's.
 * heirs[parent]: the first child. */
static enum xm_status
inherit(struct together *t, const struct xm_branch_step *steps, size_t n, size_t *heirs,
        struct xm_sequence **list, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const size_t parent = steps[i].parent;
        if (t->sequences[parent]) {
            list[i] = t->sequences[parent];
            t->sequences[parent] = NULL;
            heirs[parent] = i;
        } else {
            XM_TRY(xm_compiled_fork_sequence(list[heirs[parent]], &list[i], err));
        }
    }
    return XM_OK;
}

static enum xm_status
feed(struct together *t, const struct xm_branch_step *steps, struct xm_batch_row *rows,
     struct xm_error *err)
{
    for (size_t i = 0; i < t->n; i++)
        rows[i] = (struct xm_batch_row){t->sequences[i], &steps[i].id, 1, 1};
    return run(t, rows, err);
}

static enum xm_status
go_on(struct xm_branches *b, const struct xm_branch_step *steps, size_t n,
      struct xm_error *err)
{
    struct together *t = self(b);
    struct xm_sequence **list = xm_calloc(n, sizeof(struct xm_sequence *));
    size_t *heirs = xm_calloc(t->n, sizeof(*heirs));
    struct xm_batch_row *rows = xm_calloc(n, sizeof(*rows));
    enum xm_status s = XM_NO_MEMORY;
    if (list && heirs && rows)
        s = inherit(t, steps, n, heirs, list, err);
    else
        xm_fail(err, s, "out of memory for %zu branches", n);
    replace(t, list, list ? n : 0);
    if (s == XM_OK)
        s = feed(t, steps, rows, err);
    if (s != XM_OK)
        replace(t, NULL, 0);
    xm_free(heirs);
    xm_free(rows);
    return s;
}

static void
destroy(struct xm_branches *b)
{
    struct together *t = self(b);
    replace(t, NULL, 0);
    xm_compiled_destroy_batch(t->batch);
    xm_compiled_unref(t->compiled);
    xm_free(t);
}

static const struct xm_branches_ops ops = {
    .begin = begin, .go_on = go_on, .logits = logits, .destroy = destroy};

enum xm_status
xm_branches_create_together(struct xm_compiled *compiled, struct xm_branches **out,
                            struct xm_error *err)
{
    struct together *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_no_memory(err, "branches of a text");
    t->base.ops = &ops;
    t->compiled = compiled;
    xm_compiled_ref(compiled);
    const enum xm_status s = xm_compiled_create_batch(compiled, &t->batch, err);
    if (s == XM_OK)
        *out = &t->base;
    else
        destroy(&t->base);
    return s;
}
