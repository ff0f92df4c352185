/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/parallel.h"

#include <inttypes.h>

#include "plugin/pipeline/text_stream.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

struct xm_parallel {
    struct xm_compiled *compiled;
    struct xm_package *package; /* borrowed; may be NULL */
    struct xm_batch *batch;
};

/* A text that is being made. */
struct place {
    struct xm_sequence *sequence; /* NULL: the place is free               */
    size_t text;
    uint64_t most; /* new tokens                            */
    struct xm_sampler *sampler;
    struct xm_text_stream stream; /* where there is a tokenizer            */
    const int32_t *ids;           /* to feed next: of the prompt, or `last` */
    uint64_t n;
    int32_t last;
    uint32_t row; /* of the run whose logits it continues  */
    bool is_prompt;
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
    enum xm_status s = xm_compiled_create_batch(compiled, &p->batch, err);
    if (s != XM_OK) {
        xm_free(p);
        return s;
    }
    p->compiled = compiled;
    xm_compiled_ref(compiled);
    p->package = package;
    *out = p;
    return XM_OK;
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

/* ---- texts that begin ------------------------------------------------------------------ */

static const struct xm_token_list *
prompt_of(const struct run *r, size_t text)
{
    return &r->asked->prompts[r->asked->n_prompts == 1 ? 0 : text];
}

/* The next text, in a place that has a sequence which holds `past` tokens of the prompt. */
static enum xm_status
begin_text(struct run *r, struct place *p, uint64_t past, struct xm_error *err)
{
    const struct xm_generation *each = &r->asked->each;
    p->text = r->next++;
    const struct xm_token_list *prompt = prompt_of(r, p->text);
    const uint64_t room = xm_generation_room(each->context, prompt->n);
    if (prompt->n == 0 || room == 0)
        return xm_fail(err, XM_INVALID,
                       "prompt %zu has %zu tokens, which leaves nothing to continue in a "
                       "context of %" PRIu64,
                       p->text + 1, prompt->n, each->context);
    p->most = room < each->max_tokens ? room : each->max_tokens;
    p->ids = prompt->ids + past;
    p->n = prompt->n - past;
    p->is_prompt = true;
    r->out[p->text].reused = past;
    if (!r->has_text)
        return XM_OK;
    return xm_text_stream_begin(&p->stream, r->p->package->tokenizer, !each->keep_special,
                                each->stops, each->n_stops, err);
}

static uint64_t
past_of(const struct place *p)
{
    return p->sequence->ops->past(p->sequence);
}

static enum xm_status
open_place(struct run *r, struct place *p, struct xm_error *err)
{
    const struct xm_token_list *prompt = prompt_of(r, r->next);
    XM_TRY(xm_compiled_create_sequence(r->p->compiled, &p->sequence, err));
    XM_TRY(p->sequence->ops->match(p->sequence, prompt->ids, prompt->n, err));
    return begin_text(r, p, past_of(p), err);
}

static void
close_place(struct place *p)
{
    xm_compiled_destroy_sequence(p->sequence);
    xm_sampler_free(p->sampler);
    xm_text_stream_free(&p->stream);
    *p = (struct place){0};
}

/* Of one prompt one text only: the others are its forks. */
static enum xm_status
fill_places(struct run *r, struct xm_error *err)
{
    size_t most = r->asked->n_prompts == 1 ? 1 : r->asked->places;
    for (size_t i = 0; i < r->asked->places && r->next < r->asked->n_texts; i++) {
        if (r->places[i].sequence)
            continue;
        if (most-- == 0)
            break;
        XM_TRY(open_place(r, &r->places[i], err));
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
        if (p->sequence)
            continue;
        XM_TRY(xm_compiled_fork_sequence(first->sequence, &p->sequence, err));
        XM_TRY(begin_text(r, p, prompt_of(r, r->next)->n, err));
        p->row = first->row;
    }
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

static void
tell(const struct run *r, size_t text)
{
    if (r->asked->on_text)
        r->asked->on_text(text, r->asked->ctx);
}

static enum xm_status
end_text(struct run *r, struct place *p, enum xm_finish finish, struct xm_error *err)
{
    const size_t text = p->text;
    if (r->has_text) {
        XM_TRY(xm_text_stream_finish(&p->stream, err));
        XM_TRY(pass_on(r, p, err));
    }
    r->out[text].finish = finish;
    close_place(p);
    tell(r, text);
    return XM_OK;
}

/* Those that run, and those that have not begun. */
static enum xm_status
cancel_texts(struct run *r, struct xm_error *err)
{
    for (size_t i = 0; i < r->asked->places; i++) {
        if (r->places[i].sequence)
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
    return xm_sampler_accept(p->sampler, prompt->ids, prompt->n, err);
}

/* In a dry run, which has nothing to choose from, always 0. */
static enum xm_status
choose(const struct run *r, struct place *p, int32_t *id, struct xm_error *err)
{
    uint64_t rows, vocabulary;
    const struct xm_batch *batch = r->p->batch;
    const float *logits = batch->ops->logits(batch, p->row, &rows, &vocabulary);
    *id = 0;
    if (xm_dry_run())
        return XM_OK;
    if (!p->sampler)
        XM_TRY(make_sampler(r, p, vocabulary, err));
    XM_TRY(xm_logits_check(r->p->compiled, logits, vocabulary, past_of(p) - 1, err));
    return xm_sampler_next(p->sampler, logits, id, err);
}

static bool
ends(const struct run *r, int32_t id)
{
    const struct xm_package *package = r->p->package;
    return package && !r->asked->each.ignore_ends && !xm_dry_run() &&
           xm_generation_config_is_eos(&package->generation, id);
}

static enum xm_status
add_token(struct run *r, struct place *p, int32_t id, struct xm_error *err)
{
    if (!xm_token_list_add(&r->out[p->text].ids, id))
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the tokens");
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_text_stream_push(&p->stream, id, err));
    return pass_on(r, p, err);
}

/* What a text makes of its row of logits: a token to feed next, or its end. */
static enum xm_status
go_on(struct run *r, struct place *p, struct xm_error *err)
{
    XM_TRY(choose(r, p, &p->last, err));
    if (ends(r, p->last))
        return end_text(r, p, XM_FINISH_STOP, err);
    XM_TRY(add_token(r, p, p->last, err));
    if (p->stream.stopped)
        return end_text(r, p, XM_FINISH_STOP, err);
    if (r->out[p->text].ids.n == p->most)
        return end_text(r, p,
                        p->most < r->asked->each.max_tokens ? XM_FINISH_CONTEXT
                                                            : XM_FINISH_LENGTH,
                        err);
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

/* All that is there to feed, at once. */
static enum xm_status
feed(struct run *r, struct xm_error *err)
{
    uint32_t n = 0;
    uint64_t tokens = 0;
    bool has_prompts = false;
    for (size_t i = 0; i < r->asked->places; i++) {
        struct place *p = &r->places[i];
        if (!p->sequence)
            continue;
        p->row = n;
        r->rows[n++] = (struct xm_batch_row){p->sequence, p->ids, p->n, 1};
        tokens += p->n;
        has_prompts |= p->is_prompt;
    }
    const struct done before = done_by(r->p);
    XM_TRY(r->p->batch->ops->run(r->p->batch, r->rows, n, err));
    add_times(r, &before, tokens, has_prompts);
    if (r->asked->on_run)
        r->asked->on_run(has_prompts, r->asked->ctx);
    return XM_OK;
}

static bool
is_over(const struct run *r)
{
    size_t running = 0;
    for (size_t i = 0; i < r->asked->places; i++)
        running += r->places[i].sequence != NULL;
    return running == 0 && r->next == r->asked->n_texts;
}

static enum xm_status
make_texts(struct run *r, struct xm_error *err)
{
    while (!is_over(r)) {
        XM_TRY(fill_places(r, err));
        XM_TRY(feed(r, err));
        for (size_t i = 0; i < r->asked->places && r->asked->n_prompts == 1; i++) {
            if (r->places[i].sequence && r->places[i].is_prompt)
                XM_TRY(fork_texts(r, &r->places[i], err));
        }
        for (size_t i = 0; i < r->asked->places; i++) {
            if (r->places[i].sequence)
                XM_TRY(go_on(r, &r->places[i], err));
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
