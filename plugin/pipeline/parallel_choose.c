/* SPDX-License-Identifier: Apache-2.0
 *
 * What texts in parallel make of their logits: tokens are chosen side by side, then each text takes
 * its own, one text after the other.
 */
#include "plugin/pipeline/parallel_run.h"

#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"

/* ---- choosing tokens ---------------------------------------------------------------------- */

static enum xm_status
make_sampler(const struct xm_texts_run *r, struct xm_place *p, uint64_t vocabulary,
             struct xm_error *err)
{
    const struct xm_token_list *prompt = xm_texts_prompt(r, p->text);
    struct xm_sampling sampling = r->asked->sampling;
    sampling.seed += p->text;
    XM_TRY(xm_sampler_create(&sampling, (size_t)vocabulary, &p->sampler, err));
    return xm_sampler_begin(p->sampler, prompt->ids, prompt->n, err);
}

static struct xm_next_token
next_token(const struct xm_texts_run *r, const struct xm_place *p)
{
    return (struct xm_next_token){.package = r->p->package,
                                  .asked = &r->asked->each,
                                  .sampler = p->sampler,
                                  .out = &r->out[p->text]};
}

static bool
ends(const struct xm_texts_run *r, const struct xm_place *p, int32_t id)
{
    const struct xm_next_token t = next_token(r, p);
    return xm_next_token_ends(&t, id);
}

static enum xm_status
add_text(struct xm_texts_run *r, struct xm_place *p, int32_t id, struct xm_error *err)
{
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_text_stream_push(&p->stream, id, err));
    return xm_texts_pass_on(r, p, err);
}

static enum xm_status
add_token(struct xm_texts_run *r, struct xm_place *p, int32_t id, struct xm_error *err)
{
    if (!xm_token_list_add(&r->out[p->text].ids, id))
        return xm_no_memory(err, "the tokens");
    return add_text(r, p, id, err);
}

static enum xm_status
end_by_id(struct xm_texts_run *r, struct xm_place *p, int32_t id, struct xm_error *err)
{
    if (r->asked->each.keep_end)
        XM_TRY(add_text(r, p, id, err));
    return xm_texts_end(r, p, XM_FINISH_STOP, err);
}

/* Its length or the context ends a text of p->most new tokens. */
static enum xm_status
end_by_length(struct xm_texts_run *r, struct xm_place *p, struct xm_error *err)
{
    return xm_texts_end(
        r, p, p->most < r->asked->each.max_tokens ? XM_FINISH_CONTEXT : XM_FINISH_LENGTH,
        err);
}

/* What a text makes of the token that has been chosen for it: a token to feed next, or its end. */
static enum xm_status
take(struct xm_texts_run *r, struct xm_place *p, struct xm_choice *c,
     struct xm_error *err)
{
    if (!c->is_sound)
        return xm_logits_check(r->p->compiled, c->row, r->vocabulary,
                               xm_place_past(p) - 1, err);
    if (c->error.status != XM_OK)
        return xm_fail(err, c->error.status, "%s", c->error.text);
    p->last = c->id;
    if (ends(r, p, p->last))
        return end_by_id(r, p, p->last, err);
    XM_TRY(add_token(r, p, p->last, err));
    if (p->stream.stopped)
        return xm_texts_end(r, p, XM_FINISH_STOP, err);
    if (r->out[p->text].ids.n == p->most)
        return end_by_length(r, p, err);
    p->ids = &p->last;
    p->n = 1;
    p->is_prompt = false;
    return p->sampler ? xm_sampler_accept(p->sampler, &p->last, 1, err) : XM_OK;
}

/* ---- all texts that have logits ------------------------------------------------------------ */

static enum xm_status
prepare(struct xm_texts_run *r, struct xm_place *p, struct xm_choice *c,
        struct xm_error *err)
{
    uint64_t rows;
    const struct xm_batch *batch = r->p->batch;
    *c = (struct xm_choice){.row =
                                batch->ops->logits(batch, p->row, &rows, &r->vocabulary)};
    if (!xm_dry_run() && !p->sampler)
        XM_TRY(make_sampler(r, p, r->vocabulary, err));
    c->text = next_token(r, p);
    return XM_OK;
}

/* Lists the texts that a token is to be chosen for, in r->choices and r->choosing. A text of no new
 * tokens, and one that fails already, ends here. */
static size_t
list_choices(struct xm_texts_run *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct xm_place *p = &r->places[i];
        struct xm_error why = {0};
        if (!p->has_logits)
            continue;
        p->has_logits = false;
        const enum xm_status s = p->most == 0 ? end_by_length(r, p, &why)
                                              : prepare(r, p, &r->choices[n], &why);
        if (s != XM_OK)
            xm_texts_fail(r, p, &why);
        else if (p->is_taken)
            r->choosing[n++] = p;
    }
    return n;
}

enum xm_status
xm_texts_choose(struct xm_texts_run *r, struct xm_error *err)
{
    const size_t n = list_choices(r);
    if (n > 0)
        XM_TRY(xm_chooser_run(r->p->chooser, r->choices, n, r->vocabulary, err));
    for (size_t i = 0; i < n; i++) {
        struct xm_error why = {0};
        if (take(r, r->choosing[i], &r->choices[i], &why) != XM_OK)
            xm_texts_fail(r, r->choosing[i], &why);
    }
    return XM_OK;
}
