/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts in parallel begin and end.
 */
#include "plugin/pipeline/parallel_run.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- places ---------------------------------------------------------------------------- */

bool
xm_place_runs(const struct xm_place *p)
{
    return p->sequence != NULL;
}

bool
xm_place_waits(const struct xm_place *p)
{
    return p->is_taken && !p->sequence;
}

bool
xm_place_has_unread_prompt(const struct xm_place *p)
{
    return p->sequence && p->is_prompt;
}

size_t
xm_places_count(const struct xm_texts_run *r, bool (*is_meant)(const struct xm_place *))
{
    size_t n = 0;
    for (size_t i = 0; i < r->asked->places; i++)
        n += is_meant(&r->places[i]);
    return n;
}

struct xm_place *
xm_places_oldest(const struct xm_texts_run *r, bool (*is_meant)(const struct xm_place *))
{
    struct xm_place *found = NULL;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct xm_place *p = &r->places[i];
        if (is_meant(p) && (!found || p->text < found->text))
            found = p;
    }
    return found;
}

uint64_t
xm_place_past(const struct xm_place *p)
{
    return p->sequence->ops->past(p->sequence);
}

void
xm_place_close(struct xm_place *p)
{
    xm_compiled_destroy_sequence(p->sequence);
    xm_sampler_free(p->sampler);
    xm_text_stream_free(&p->stream);
    xm_token_list_free(&p->again);
    *p = (struct xm_place){0};
}

/* ---- texts that begin ------------------------------------------------------------------ */

const struct xm_token_list *
xm_texts_prompt(const struct xm_texts_run *r, size_t text)
{
    return &r->asked->prompts[r->asked->n_prompts == 1 ? 0 : text];
}

/* New tokens of a text, at most. */
static uint64_t
most_of(const struct xm_texts_run *r, size_t text)
{
    const struct xm_generation *each = &r->asked->each;
    const uint64_t room = xm_generation_room(each->context, xm_texts_prompt(r, text)->n);
    return room < each->max_tokens ? room : each->max_tokens;
}

/* XM_OK: the text can begin. */
static enum xm_status
check_prompt(const struct xm_texts_run *r, size_t text, struct xm_error *err)
{
    const struct xm_error *refused = r->asked->refused;
    const size_t prompt = r->asked->n_prompts == 1 ? 0 : text;
    const size_t n = r->asked->prompts[prompt].n;
    const uint64_t context = r->asked->each.context;
    if (refused && refused[prompt].status != XM_OK)
        return xm_fail(err, refused[prompt].status, "%s", refused[prompt].text);
    if (n == 0)
        return xm_fail(err, XM_INVALID, "the prompt is empty");
    if (xm_generation_room(context, n) == 0)
        return xm_fail(err, XM_INVALID,
                       "the prompt has %zu token%s, which leaves no room in a context of "
                       "%" PRIu64,
                       n, n == 1 ? "" : "s", context);
    return XM_OK;
}

static void
tell(const struct xm_texts_run *r, size_t text)
{
    if (r->asked->on_text)
        r->asked->on_text(text, r->asked->ctx);
}

/* Ends the texts from the next one on that cannot begin. */
static void
skip_refused(struct xm_texts_run *r)
{
    for (; r->next < r->asked->n_texts; r->next++) {
        struct xm_error why = {0};
        if (check_prompt(r, r->next, &why) == XM_OK)
            return;
        r->out[r->next].error = why;
        r->out[r->next].finish = XM_FINISH_FAILED;
        tell(r, r->next);
    }
}

/* The next text, in a place that has a sequence. */
static enum xm_status
begin_text(struct xm_texts_run *r, struct xm_place *p, struct xm_error *err)
{
    const struct xm_generation *each = &r->asked->each;
    p->text = r->next++;
    p->is_taken = true;
    const struct xm_token_list *prompt = xm_texts_prompt(r, p->text);
    p->most = most_of(r, p->text);
    p->ids = prompt->ids;
    p->n = prompt->n;
    p->is_prompt = true;
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_generation_echo(r->p->package, each, prompt->ids, prompt->n,
                              &r->out[p->text].text, err));
    return xm_text_stream_begin(&p->stream, r->p->package->tokenizer, each, err);
}

/* Of one prompt one text only: the others are its forks. None begins while others wait. */
enum xm_status
xm_texts_fill_places(struct xm_texts_run *r, struct xm_error *err)
{
    const bool is_one = r->asked->n_prompts == 1;
    if (xm_places_count(r, xm_place_waits) ||
        (is_one && xm_places_count(r, xm_place_has_unread_prompt)))
        return XM_OK;
    size_t most = is_one ? 1 : r->asked->places;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct xm_place *p = &r->places[i];
        if (p->is_taken)
            continue;
        skip_refused(r);
        if (r->next == r->asked->n_texts || most-- == 0)
            break;
        XM_TRY(xm_compiled_create_sequence(r->p->compiled, &p->sequence, err));
        XM_TRY(begin_text(r, p, err));
    }
    return XM_OK;
}

/* The other texts of the prompt that has just been run, as far as there are places: they read the
 * same row of logits. */
enum xm_status
xm_texts_fork(struct xm_texts_run *r, const struct xm_place *first, struct xm_error *err)
{
    for (size_t i = 0; i < r->asked->places && r->next < r->asked->n_texts; i++) {
        struct xm_place *p = &r->places[i];
        if (p->is_taken)
            continue;
        XM_TRY(xm_compiled_fork_sequence(first->sequence, &p->sequence, err));
        XM_TRY(begin_text(r, p, err));
        r->out[p->text].reused = p->n;
        p->n = 0;
        p->row = first->row;
        p->has_logits = true;
    }
    return XM_OK;
}

static int
is_shorter(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* What a text holds at most. Forks share the whole pages of their prompt, and the next one until
 * each has its own. */
static uint64_t
positions_of(const struct xm_texts_run *r, size_t text)
{
    const uint64_t page = r->p->batch->page;
    const uint64_t prompt = xm_texts_prompt(r, text)->n, most = most_of(r, text);
    if (r->asked->n_prompts > 1 || r->asked->n_texts == 1)
        return prompt + most;
    return most + (text ? prompt % page : prompt + page);
}

/* What the places hold at most, the longest texts, where all texts have a near end. */
enum xm_status
xm_texts_announce(const struct xm_texts_run *r, struct xm_error *err)
{
    const size_t n = r->asked->n_texts;
    struct xm_compiled *c = r->p->compiled;
    uint64_t *positions = xm_calloc(n, sizeof(*positions));
    bool is_near = true;
    if (!positions)
        return xm_no_memory(err, "%zu texts", n);
    for (size_t i = 0; i < n; i++) {
        if (check_prompt(r, i, NULL) != XM_OK)
            continue;
        is_near &= most_of(r, i) <= XM_MOST_ANNOUNCED;
        positions[i] = is_near ? positions_of(r, i) : 0;
    }
    qsort(positions, n, sizeof(*positions), is_shorter);
    if (is_near && c->ops->expect)
        c->ops->expect(c, positions, r->asked->places < n ? r->asked->places : n);
    xm_free(positions);
    return XM_OK;
}

/* ---- texts that end --------------------------------------------------------------------- */

enum xm_status
xm_texts_pass_on(struct xm_texts_run *r, const struct xm_place *p, struct xm_error *err)
{
    struct xm_strbuf *text = &r->out[p->text].text;
    xm_strbuf_add_n(text, xm_strbuf_text(&p->stream.text), p->stream.text.n);
    return xm_strbuf_ok(text) ? XM_OK : xm_no_memory(err, "the text");
}

/* The text so far, with the end that its stream holds back. */
static enum xm_status
finish_stream(struct xm_texts_run *r, struct xm_place *p, struct xm_error *err)
{
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_text_stream_finish(&p->stream, err));
    return xm_texts_pass_on(r, p, err);
}

static void
leave_place(struct xm_texts_run *r, struct xm_place *p, enum xm_finish finish)
{
    const size_t text = p->text;
    r->out[text].finish = finish;
    r->has_ended = true;
    xm_place_close(p);
    tell(r, text);
}

enum xm_status
xm_texts_end(struct xm_texts_run *r, struct xm_place *p, enum xm_finish finish,
             struct xm_error *err)
{
    XM_TRY(finish_stream(r, p, err));
    leave_place(r, p, finish);
    return XM_OK;
}

void
xm_texts_fail(struct xm_texts_run *r, struct xm_place *p, const struct xm_error *why)
{
    struct xm_error second = {0}; /* the first cause wins */
    r->out[p->text].error = *why;
    finish_stream(r, p, &second);
    leave_place(r, p, XM_FINISH_FAILED);
}

enum xm_status
xm_texts_cancel(struct xm_texts_run *r, struct xm_error *err)
{
    for (size_t i = 0; i < r->asked->places; i++) {
        if (r->places[i].is_taken)
            XM_TRY(xm_texts_end(r, &r->places[i], XM_FINISH_CANCELLED, err));
    }
    for (; r->next < r->asked->n_texts; r->next++) {
        r->out[r->next].finish = XM_FINISH_CANCELLED;
        tell(r, r->next);
    }
    return XM_OK;
}
