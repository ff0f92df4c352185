/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches of models without sequences. The states hold one branch at a time; for the next one they
 * are truncated to the tokens that both share.
 */
#include <string.h>

#include "plugin/pipeline/branches.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/text/token_list.h"

struct in_turn {
    struct xm_branches base; /* first */
    struct xm_token_runner *runner;
    struct xm_token_list held;   /* tokens that the states hold */
    struct xm_token_list *texts; /* owned, [n] */
    float *logits;               /* owned, [n][vocabulary] */
    uint64_t vocabulary;
    size_t n;
};

static struct in_turn *
self(const struct xm_branches *b)
{
    return (struct in_turn *)(uintptr_t)b;
}

static void
replace(struct in_turn *t, struct xm_token_list *texts, size_t n)
{
    for (size_t i = 0; i < t->n; i++)
        xm_token_list_free(&t->texts[i]);
    xm_free(t->texts);
    t->texts = texts;
    t->n = n;
}

/* Truncates the states to what they share with `text`. A device that cannot truncate so far empties
 * them. */
static void
go_back(struct in_turn *t, const struct xm_token_list *text)
{
    const size_t same =
        xm_same_tokens(t->held.ids, t->held.n, text->ids, text->n ? text->n - 1 : 0);
    if (same < t->held.n)
        xm_token_runner_truncate(t->runner, same);
    const uint64_t past = xm_token_runner_past(t->runner);
    if (past < t->held.n)
        t->held.n = (size_t)past;
}

static enum xm_status
keep_logits(struct in_turn *t, size_t i, struct xm_error *err)
{
    uint64_t rows, bytes;
    const float *row = xm_token_runner_logits(t->runner, &rows, &t->vocabulary);
    if (i == 0) {
        float *grown = xm_mul_size(t->n * sizeof(*row), t->vocabulary, &bytes)
                           ? xm_realloc(t->logits, (size_t)bytes)
                           : NULL;
        if (!grown)
            return xm_no_memory(err, "branches of a text");
        t->logits = grown;
    }
    memcpy(t->logits + i * t->vocabulary, row + (rows - 1) * t->vocabulary,
           (size_t)t->vocabulary * sizeof(*row));
    return XM_OK;
}

static enum xm_status
compute(struct in_turn *t, struct xm_error *err)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct xm_token_list *text = &t->texts[i];
        go_back(t, text);
        const size_t past = t->held.n;
        if (!xm_token_list_add_n(&t->held, text->ids + past, text->n - past))
            return xm_no_memory(err, "branches of a text");
        const enum xm_status s =
            xm_token_runner_feed(t->runner, text->ids + past, text->n - past, 1, err);
        if (s != XM_OK) {
            t->held.n = past;
            return s;
        }
        XM_TRY(keep_logits(t, i, err));
    }
    return XM_OK;
}

static enum xm_status
begin(struct xm_branches *b, const int32_t *prompt, size_t n, uint64_t *reused,
      struct xm_error *err)
{
    struct in_turn *t = self(b);
    struct xm_token_list *one = xm_calloc(1, sizeof(*one));
    *reused = 0;
    if (!one)
        return xm_no_memory(err, "branches of a text");
    replace(t, one, 1);
    return xm_token_list_add_n(one, prompt, n) ? compute(t, err)
                                               : xm_no_memory(err, "branches of a text");
}

static bool
split(const struct in_turn *t, const struct xm_branch_step *steps, size_t n,
      struct xm_token_list *texts)
{
    for (size_t i = 0; i < n; i++) {
        const struct xm_token_list *from = &t->texts[steps[i].parent];
        if (!xm_token_list_add_n(&texts[i], from->ids, from->n) ||
            !xm_token_list_add(&texts[i], steps[i].id))
            return false;
    }
    return true;
}

static enum xm_status
go_on(struct xm_branches *b, const struct xm_branch_step *steps, size_t n,
      struct xm_error *err)
{
    struct in_turn *t = self(b);
    struct xm_token_list *texts = xm_calloc(n, sizeof(*texts));
    const bool ok = texts && split(t, steps, n, texts);
    replace(t, texts, texts ? n : 0);
    const enum xm_status s =
        ok ? compute(t, err) : xm_no_memory(err, "branches of a text");
    if (s != XM_OK)
        replace(t, NULL, 0);
    return s;
}

static const float *
logits(const struct xm_branches *b, size_t i, uint64_t *vocabulary)
{
    *vocabulary = self(b)->vocabulary;
    return self(b)->logits + i * *vocabulary;
}

static void
destroy(struct xm_branches *b)
{
    struct in_turn *t = self(b);
    replace(t, NULL, 0);
    xm_token_list_free(&t->held);
    xm_free(t->logits);
    xm_token_runner_destroy(t->runner);
    xm_free(t);
}

static const struct xm_branches_ops ops = {
    .begin = begin, .go_on = go_on, .logits = logits, .destroy = destroy};

enum xm_status
xm_branches_create_in_turn(struct xm_compiled *compiled, struct xm_branches **out,
                           struct xm_error *err)
{
    struct in_turn *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_no_memory(err, "branches of a text");
    t->base.ops = &ops;
    const enum xm_status s = xm_token_runner_create(compiled, &t->runner, err);
    if (s == XM_OK)
        *out = &t->base;
    else
        destroy(&t->base);
    return s;
}

/* ---- choosing the implementation ---- */

enum xm_status
xm_branches_create(struct xm_compiled *compiled, struct xm_branches **out,
                   struct xm_error *err)
{
    struct xm_error why = {0};
    const enum xm_status s = xm_branches_create_together(compiled, out, &why);
    if (s == XM_UNSUPPORTED)
        return xm_branches_create_in_turn(compiled, out, err);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

void
xm_branches_destroy(struct xm_branches *b)
{
    if (b)
        b->ops->destroy(b);
}
