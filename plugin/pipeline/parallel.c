/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/parallel.h"

#include <inttypes.h>
#include <stdlib.h>

#include "plugin/pipeline/next_token.h"
#include "plugin/pipeline/text_stream.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

struct xm_parallel {
    struct xm_compiled *compiled;
    struct xm_package *package; /* borrowed; may be NULL */
    struct xm_batch *batch;
};

enum { PROMPT_PARTS = 4 }; /* of a chunk: one is for prompts, however many texts decode */

/* A text that is being made. */
struct place {
    bool is_taken;                /* by a text                                */
    struct xm_sequence *sequence; /* NULL: it waits for room in the cache     */
    size_t text;
    uint64_t most; /* new tokens                               */
    struct xm_sampler *sampler;
    struct xm_text_stream stream; /* where there is a tokenizer               */
    struct xm_token_list again;   /* of one that has waited: all that it had  */
    const int32_t *ids;           /* to feed next: of the prompt, or `last` … */
    uint64_t n;
    uint64_t piece; /* … of them, in this run                   */
    int32_t last;
    uint32_t row; /* of the run whose logits it continues     */
    bool is_prompt, has_logits;
};

/* A run that goes on. */
struct run {
    struct xm_parallel *p;
    const struct xm_parallel_run *asked;
    struct xm_generation_result *out;
    struct xm_generation_times *times;
    struct place *places; /* [asked->places]; they do not move */
    struct xm_batch_row *rows;
    size_t next; /* text that has not begun */
    bool has_text;
    bool has_ended; /* a text, since one that waited went on */
};

/* ---- life ---------------------------------------------------------------------------- */

enum xm_status
xm_parallel_create(struct xm_compiled *compiled, struct xm_package *package,
                   struct xm_parallel **out, struct xm_error *err)
{
    *out = NULL;
    struct xm_parallel *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for texts in parallel");
    p->compiled = compiled;
    xm_compiled_ref(compiled);
    p->package = package;
    enum xm_status s = xm_compiled_create_batch(compiled, &p->batch, err);
    if (s == XM_OK)
        *out = p;
    else
        xm_parallel_destroy(p);
    return s;
}

void
xm_parallel_destroy(struct xm_parallel *p)
{
    if (!p)
        return;
    xm_compiled_destroy_batch(p->batch);
    xm_compiled_unref(p->compiled);
    xm_free(p);
}

struct xm_infer *
xm_parallel_request(struct xm_parallel *p)
{
    return p->batch->control;
}

/* ---- places ---------------------------------------------------------------------------- */

static bool
runs(const struct place *p)
{
    return p->sequence != NULL;
}

static bool
waits(const struct place *p)
{
    return p->is_taken && !p->sequence;
}

static bool
has_unread_prompt(const struct place *p)
{
    return p->sequence && p->is_prompt;
}

static bool
is_to_read(const struct place *p)
{
    return has_unread_prompt(p) && p->piece == 0;
}

static size_t
count(const struct run *r, bool (*is_meant)(const struct place *))
{
    size_t n = 0;
    for (size_t i = 0; i < r->asked->places; i++)
        n += is_meant(&r->places[i]);
    return n;
}

/* Of those meant the one whose text comes first; NULL: none is. */
static struct place *
oldest(const struct run *r, bool (*is_meant)(const struct place *))
{
    struct place *found = NULL;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct place *p = &r->places[i];
        if (is_meant(p) && (!found || p->text < found->text))
            found = p;
    }
    return found;
}

static struct place *
newest_that_runs(const struct run *r)
{
    struct place *found = NULL;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct place *p = &r->places[i];
        if (runs(p) && (!found || p->text > found->text))
            found = p;
    }
    return found;
}

static uint64_t
past_of(const struct place *p)
{
    return p->sequence->ops->past(p->sequence);
}

static void
close_place(struct place *p)
{
    xm_compiled_destroy_sequence(p->sequence);
    xm_sampler_free(p->sampler);
    xm_text_stream_free(&p->stream);
    xm_token_list_free(&p->again);
    *p = (struct place){0};
}

/* ---- texts that begin ------------------------------------------------------------------ */

static const struct xm_token_list *
prompt_of(const struct run *r, size_t text)
{
    return &r->asked->prompts[r->asked->n_prompts == 1 ? 0 : text];
}

/* New tokens of a text, at most. */
static uint64_t
most_of(const struct run *r, size_t text)
{
    const struct xm_generation *each = &r->asked->each;
    const uint64_t room = xm_generation_room(each->context, prompt_of(r, text)->n);
    return room < each->max_tokens ? room : each->max_tokens;
}

/* XM_OK: the text can begin. */
static enum xm_status
check_prompt(const struct run *r, size_t text, struct xm_error *err)
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
                       "the prompt has %zu tokens, which leaves no room in a context of "
                       "%" PRIu64,
                       n, context);
    return XM_OK;
}

static void
tell(const struct run *r, size_t text)
{
    if (r->asked->on_text)
        r->asked->on_text(text, r->asked->ctx);
}

/* Ends the texts from the next one on that cannot begin. */
static void
skip_refused(struct run *r)
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
begin_text(struct run *r, struct place *p, struct xm_error *err)
{
    const struct xm_generation *each = &r->asked->each;
    p->text = r->next++;
    p->is_taken = true;
    const struct xm_token_list *prompt = prompt_of(r, p->text);
    p->most = most_of(r, p->text);
    p->ids = prompt->ids;
    p->n = prompt->n;
    p->is_prompt = true;
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_generation_echo(r->p->package, each, prompt, &r->out[p->text].text, err));
    return xm_text_stream_begin(&p->stream, r->p->package->tokenizer, each, err);
}

/* Of one prompt one text only: the others are its forks. None begins while others wait. */
static enum xm_status
fill_places(struct run *r, struct xm_error *err)
{
    const bool is_one = r->asked->n_prompts == 1;
    if (count(r, waits) || (is_one && count(r, has_unread_prompt)))
        return XM_OK;
    size_t most = is_one ? 1 : r->asked->places;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct place *p = &r->places[i];
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
static enum xm_status
fork_texts(struct run *r, const struct place *first, struct xm_error *err)
{
    for (size_t i = 0; i < r->asked->places && r->next < r->asked->n_texts; i++) {
        struct place *p = &r->places[i];
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
positions_of(const struct run *r, size_t text)
{
    const uint64_t page = r->p->batch->page;
    const uint64_t prompt = prompt_of(r, text)->n, most = most_of(r, text);
    if (r->asked->n_prompts > 1 || r->asked->n_texts == 1)
        return prompt + most;
    return most + (text ? prompt % page : prompt + page);
}

/* What the places hold at most, the longest texts, where all texts have a near end. */
static enum xm_status
announce(const struct run *r, struct xm_error *err)
{
    const size_t n = r->asked->n_texts;
    struct xm_compiled *c = r->p->compiled;
    uint64_t *positions = xm_calloc(n, sizeof(*positions));
    bool is_near = true;
    if (!positions)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for %zu texts", n);
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

static enum xm_status
pass_on(struct run *r, const struct place *p, struct xm_error *err)
{
    struct xm_strbuf *text = &r->out[p->text].text;
    xm_strbuf_add_n(text, xm_strbuf_text(&p->stream.text), p->stream.text.n);
    return xm_strbuf_ok(text) ? XM_OK
                              : xm_fail(err, XM_NO_MEMORY, "out of memory for the text");
}

/* The text so far, with the end that its stream holds back. */
static enum xm_status
finish_stream(struct run *r, struct place *p, struct xm_error *err)
{
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_text_stream_finish(&p->stream, err));
    return pass_on(r, p, err);
}

static void
leave_place(struct run *r, struct place *p, enum xm_finish finish)
{
    const size_t text = p->text;
    r->out[text].finish = finish;
    r->has_ended = true;
    close_place(p);
    tell(r, text);
}

static enum xm_status
end_text(struct run *r, struct place *p, enum xm_finish finish, struct xm_error *err)
{
    XM_TRY(finish_stream(r, p, err));
    leave_place(r, p, finish);
    return XM_OK;
}

/* The text keeps its tokens; the other texts go on. */
static void
fail_text(struct run *r, struct place *p, const struct xm_error *why)
{
    struct xm_error second = {0}; /* the first cause wins */
    r->out[p->text].error = *why;
    finish_stream(r, p, &second);
    leave_place(r, p, XM_FINISH_FAILED);
}

/* Those that have begun, and those that have not. */
static enum xm_status
cancel_texts(struct run *r, struct xm_error *err)
{
    for (size_t i = 0; i < r->asked->places; i++) {
        if (r->places[i].is_taken)
            XM_TRY(end_text(r, &r->places[i], XM_FINISH_CANCELLED, err));
    }
    for (; r->next < r->asked->n_texts; r->next++) {
        r->out[r->next].finish = XM_FINISH_CANCELLED;
        tell(r, r->next);
    }
    return XM_OK;
}

/* ---- choosing tokens ---------------------------------------------------------------------- */

static enum xm_status
make_sampler(const struct run *r, struct place *p, uint64_t vocabulary,
             struct xm_error *err)
{
    const struct xm_token_list *prompt = prompt_of(r, p->text);
    struct xm_sampling sampling = r->asked->sampling;
    sampling.seed += p->text;
    XM_TRY(xm_sampler_create(&sampling, (size_t)vocabulary, &p->sampler, err));
    return xm_sampler_begin(p->sampler, prompt->ids, prompt->n, err);
}

static struct xm_next_token
next_token(const struct run *r, const struct place *p)
{
    return (struct xm_next_token){r->p->package, &r->asked->each, p->sampler,
                                  &r->out[p->text]};
}

static enum xm_status
choose(const struct run *r, struct place *p, int32_t *id, struct xm_error *err)
{
    uint64_t rows, vocabulary;
    const struct xm_batch *batch = r->p->batch;
    const float *logits = batch->ops->logits(batch, p->row, &rows, &vocabulary);
    if (!xm_dry_run()) {
        if (!p->sampler)
            XM_TRY(make_sampler(r, p, vocabulary, err));
        XM_TRY(xm_logits_check(r->p->compiled, logits, vocabulary, past_of(p) - 1, err));
    }
    const struct xm_next_token t = next_token(r, p);
    return xm_next_token_choose(&t, logits, vocabulary, id, err);
}

static bool
ends(const struct run *r, const struct place *p, int32_t id)
{
    const struct xm_next_token t = next_token(r, p);
    return xm_next_token_ends(&t, id);
}

static enum xm_status
add_text(struct run *r, struct place *p, int32_t id, struct xm_error *err)
{
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_text_stream_push(&p->stream, id, err));
    return pass_on(r, p, err);
}

static enum xm_status
add_token(struct run *r, struct place *p, int32_t id, struct xm_error *err)
{
    if (!xm_token_list_add(&r->out[p->text].ids, id))
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the tokens");
    return add_text(r, p, id, err);
}

static enum xm_status
end_by_id(struct run *r, struct place *p, int32_t id, struct xm_error *err)
{
    if (r->asked->each.keep_end)
        XM_TRY(add_text(r, p, id, err));
    return end_text(r, p, XM_FINISH_STOP, err);
}

/* Its length or the context ends a text of p->most new tokens. */
static enum xm_status
end_by_length(struct run *r, struct place *p, struct xm_error *err)
{
    return end_text(
        r, p, p->most < r->asked->each.max_tokens ? XM_FINISH_CONTEXT : XM_FINISH_LENGTH,
        err);
}

/* What a text makes of its row of logits: a token to feed next, or its end. */
static enum xm_status
go_on(struct run *r, struct place *p, struct xm_error *err)
{
    p->has_logits = false;
    if (p->most == 0)
        return end_by_length(r, p, err);
    XM_TRY(choose(r, p, &p->last, err));
    if (ends(r, p, p->last))
        return end_by_id(r, p, p->last, err);
    XM_TRY(add_token(r, p, p->last, err));
    if (p->stream.stopped)
        return end_text(r, p, XM_FINISH_STOP, err);
    if (r->out[p->text].ids.n == p->most)
        return end_by_length(r, p, err);
    p->ids = &p->last;
    p->n = 1;
    p->is_prompt = false;
    return p->sampler ? xm_sampler_accept(p->sampler, &p->last, 1, err) : XM_OK;
}

/* ---- a run -------------------------------------------------------------------------------- */

/* What has been done so far. */
struct done {
    double seconds, built;
    struct xm_request_stats stats;
};

static struct done
done_by(const struct xm_parallel *p)
{
    const struct xm_infer *control = p->batch->control;
    struct xm_compiled_stats stats;
    struct done d = {.seconds = xm_now()};
    p->compiled->ops->stats(p->compiled, &stats);
    d.built = stats.builds.seconds;
    control->ops->stats(control, &d.stats);
    return d;
}

static void
add_times(struct run *r, const struct done *before, uint64_t tokens, bool has_prompts)
{
    struct xm_generation_times *t = r->times;
    const struct done now = done_by(r->p);
    const double built = now.built - before->built;
    const double seconds = now.seconds - before->seconds - built;
    t->build_s += built;
    *(has_prompts ? &t->prompt_s : &t->decode_s) += seconds > 0.0 ? seconds : 0.0;
    *(has_prompts ? &t->prompt_tokens : &t->decode_tokens) += tokens;
    if (has_prompts)
        t->prompt_multiply_adds += now.stats.multiply_adds - before->stats.multiply_adds;
    else
        t->decode_weight_bytes += now.stats.weight_bytes - before->stats.weight_bytes;
}

/* What a run is made of. */
struct feed {
    uint32_t n;
    uint64_t tokens;
    bool has_prompts;
};

static void
add_row(struct run *r, struct place *p, uint64_t n, struct feed *f)
{
    p->piece = n;
    p->row = f->n;
    r->rows[f->n++] = (struct xm_batch_row){p->sequence, p->ids, n, n == p->n ? 1 : 0};
    f->tokens += n;
    f->has_prompts |= p->is_prompt;
}

/* What the cache has of a prompt that nothing has been fed of. */
static enum xm_status
take_over(struct run *r, struct place *p, struct xm_error *err)
{
    if (past_of(p))
        return XM_OK;
    XM_TRY(p->sequence->ops->match(p->sequence, p->ids, p->n, err));
    const uint64_t past = past_of(p);
    p->ids += past;
    p->n -= past;
    if (p->again.n == 0)
        r->out[p->text].reused = past;
    return XM_OK;
}

/* Texts that decode go along in each run; prompts, in the order of their texts, share what is left
 * of a chunk, so that none waits for a long one to be read. */
static enum xm_status
choose_pieces(struct run *r, struct feed *f, struct xm_error *err)
{
    const uint64_t chunk = r->p->batch->chunk;
    const uint64_t least = chunk / PROMPT_PARTS + 1;
    struct place *p;
    *f = (struct feed){0};
    for (size_t i = 0; i < r->asked->places; i++) {
        p = &r->places[i];
        p->piece = 0;
        if (runs(p) && !p->is_prompt)
            add_row(r, p, p->n, f);
    }
    uint64_t room = f->tokens + least < chunk ? chunk - f->tokens : least;
    while (room && (p = oldest(r, is_to_read))) {
        XM_TRY(take_over(r, p, err));
        add_row(r, p, p->n < room ? p->n : room, f);
        room -= p->piece;
    }
    return XM_OK;
}

static void
advance(struct run *r)
{
    for (size_t i = 0; i < r->asked->places; i++) {
        struct place *p = &r->places[i];
        p->ids += p->piece;
        p->n -= p->piece;
        p->has_logits = p->piece > 0 && p->n == 0;
    }
}

/* ---- a cache that is full ------------------------------------------------------------------ */

/* The text keeps what it has; its sequence begins anew with that. */
static enum xm_status
suspend(struct run *r, struct place *p, struct xm_error *err)
{
    const struct xm_token_list *prompt = prompt_of(r, p->text);
    const struct xm_token_list *made = &r->out[p->text].ids;
    xm_compiled_destroy_sequence(p->sequence);
    p->sequence = NULL;
    xm_token_list_clear(&p->again);
    if (!xm_token_list_add_n(&p->again, prompt->ids, prompt->n) ||
        !xm_token_list_add_n(&p->again, made->ids, made->n))
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the tokens");
    p->ids = p->again.ids;
    p->n = p->again.n;
    p->is_prompt = true;
    return XM_OK;
}

/* The newest text waits for others to end; one that has no room alone has failed. */
static enum xm_status
make_room(struct run *r, const struct xm_error *why, struct xm_error *err)
{
    struct place *p = newest_that_runs(r);
    if (count(r, runs) > 1)
        return suspend(r, p, err);
    fail_text(r, p, why);
    return XM_OK;
}

/* Texts that wait go on one by one, as others end. */
static enum xm_status
resume_text(struct run *r, struct xm_error *err)
{
    struct place *p = oldest(r, waits);
    if (!p || (!r->has_ended && count(r, runs)))
        return XM_OK;
    r->has_ended = false;
    return xm_compiled_create_sequence(r->p->compiled, &p->sequence, err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static enum xm_status
feed(struct run *r, struct xm_error *err)
{
    struct xm_error why = {0};
    struct feed f;
    XM_TRY(choose_pieces(r, &f, err));
    const struct done before = done_by(r->p);
    const double start = xm_clock_start(r->asked->each.clock);
    const enum xm_status s = r->p->batch->ops->run(r->p->batch, r->rows, f.n, &why);
    xm_clock_add_run(r->asked->each.clock, start);
    if (s == XM_NO_MEMORY)
        return make_room(r, &why, err);
    if (s != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    add_times(r, &before, f.tokens, f.has_prompts);
    advance(r);
    if (r->asked->on_run)
        r->asked->on_run(f.has_prompts, r->asked->ctx);
    return XM_OK;
}

static bool
is_over(const struct run *r)
{
    return count(r, runs) + count(r, waits) == 0 && r->next == r->asked->n_texts;
}

/* Whether other texts begin as forks of this one: it has read the prompt of all, and made
 * nothing. */
static bool
is_to_be_forked(const struct run *r, const struct place *p)
{
    return r->asked->n_prompts == 1 && p->has_logits && r->out[p->text].ids.n == 0;
}

static enum xm_status
make_texts(struct run *r, struct xm_error *err)
{
    XM_TRY(announce(r, err));
    while (!is_over(r)) {
        XM_TRY(resume_text(r, err));
        XM_TRY(fill_places(r, err));
        if (count(r, runs))
            XM_TRY(feed(r, err));
        for (size_t i = 0; i < r->asked->places; i++) {
            if (is_to_be_forked(r, &r->places[i]))
                XM_TRY(fork_texts(r, &r->places[i], err));
        }
        for (size_t i = 0; i < r->asked->places; i++) {
            struct xm_error why = {0};
            if (r->places[i].has_logits && go_on(r, &r->places[i], &why) != XM_OK)
                fail_text(r, &r->places[i], &why);
        }
    }
    return XM_OK;
}

enum xm_status
xm_parallel_generate(struct xm_parallel *p, const struct xm_parallel_run *asked,
                     struct xm_generation_result *out, struct xm_generation_times *times,
                     struct xm_error *err)
{
    struct run r = {.p = p,
                    .asked = asked,
                    .out = out,
                    .times = times,
                    .has_text = p->package && p->package->tokenizer,
                    .places = xm_calloc(asked->places, sizeof(*r.places)),
                    .rows = xm_calloc(asked->places, sizeof(*r.rows))};
    struct xm_error why = {0};
    enum xm_status s = XM_NO_MEMORY;
    *times = (struct xm_generation_times){0};
    if (r.places && r.rows)
        s = make_texts(&r, &why);
    else
        xm_fail(&why, s, "out of memory for %zu texts in parallel", asked->places);
    if (s == XM_CANCELLED) {
        why = (struct xm_error){0};
        s = cancel_texts(&r, &why);
    }
    for (size_t i = 0; r.places && i < asked->places; i++)
        close_place(&r.places[i]);
    xm_free(r.places);
    xm_free(r.rows);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}
