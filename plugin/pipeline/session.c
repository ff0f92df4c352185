/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/session.h"

#include <inttypes.h>

#include "plugin/pipeline/next_token.h"
#include "plugin/pipeline/prompt_lookup.h"
#include "plugin/pipeline/text_stream.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"

struct xm_session {
    struct xm_compiled *compiled;
    struct xm_package *package; /* borrowed; may be NULL */
    struct xm_token_runner *runner;
    struct xm_sampling sampling;
    struct xm_sampler *sampler;         /* NULL until there are logits                 */
    struct xm_sampler_scratch *scratch; /* the same                            */
    struct xm_token_list held;          /* what the states hold, in order              */
    struct xm_answer answer;            /* of chats; without a tokenizer: not begun yet */
};

/* A run that goes on. */
struct run {
    struct xm_session *session;
    const struct xm_generation *asked;
    struct xm_generation_result *out;
    struct xm_text_stream text;
    bool has_text;
    bool go_on; /* as on_piece says */
    /* Guessed tokens that the states hold, and the logits behind each, but no one has chosen yet:
     * the last of what is held. */
    size_t n_guessed;
    bool never_guess; /* the model gives logits of the last token only    */
    bool never_ahead; /* the device chooses no tokens                     */
    bool is_running;  /* the run of `running`, a token that it has chosen */
    int32_t running;
};

/* ---- life ---------------------------------------------------------------------------- */

/* Without a tokenizer, or with one of a kind that is not known, there are ids. */
static enum xm_status
read_package(struct xm_package *p, struct xm_error *err)
{
    struct xm_error why = {0};
    enum xm_status s = p ? xm_package_read(p, XM_PACKAGE_TOKENIZER, &why) : XM_OK;
    if (s != XM_OK && s != XM_NOT_FOUND && s != XM_UNSUPPORTED)
        return xm_fail(err, s, "%s", why.text);
    return p ? xm_package_read(p, XM_PACKAGE_GENERATION, err) : XM_OK;
}

enum xm_status
xm_session_create(struct xm_compiled *compiled, struct xm_package *package,
                  struct xm_session **out, struct xm_error *err)
{
    *out = NULL;
    XM_TRY(read_package(package, err));
    struct xm_session *s = xm_calloc(1, sizeof(*s));
    if (!s)
        return xm_no_memory(err, "a session");
    s->compiled = compiled; /* which the runner holds */
    s->package = package;
    s->sampling = (struct xm_sampling){.top_p = 1.0f};
    enum xm_status status = xm_token_runner_create(compiled, &s->runner, err);
    if (status == XM_OK)
        *out = s;
    else
        xm_session_destroy(s);
    return status;
}

void
xm_session_destroy(struct xm_session *s)
{
    if (!s)
        return;
    xm_token_runner_destroy(s->runner);
    xm_sampler_free(s->sampler);
    xm_sampler_scratch_free(s->scratch);
    xm_token_list_free(&s->held);
    xm_answer_free(&s->answer);
    xm_free(s);
}

void
xm_session_set_sampling(struct xm_session *s, const struct xm_sampling *sampling)
{
    s->sampling = *sampling;
    xm_sampler_free(s->sampler);
    s->sampler = NULL;
}

struct xm_infer *
xm_session_request(const struct xm_session *s)
{
    return xm_token_runner_request(s->runner);
}

void
xm_session_cancel(struct xm_session *s)
{
    struct xm_infer *r = xm_session_request(s);
    r->ops->cancel(r);
}

void
xm_session_resume(struct xm_session *s)
{
    struct xm_infer *r = xm_session_request(s);
    r->ops->resume(r);
}

void
xm_generation_result_free(struct xm_generation_result *r)
{
    xm_token_list_free(&r->prompt);
    xm_token_list_free(&r->ids);
    xm_free(r->log_probs.values);
    xm_strbuf_free(&r->text);
    *r = (struct xm_generation_result){0};
}

enum xm_status
xm_generation_echo(const struct xm_package *p, const struct xm_generation *asked,
                   const struct xm_token_list *prompt, struct xm_strbuf *out,
                   struct xm_error *err)
{
    if (!asked->echo || !p || !p->tokenizer)
        return XM_OK;
    return xm_tokenizer_decode(p->tokenizer, prompt->ids, prompt->n, !asked->keep_special,
                               out, err);
}

uint64_t
xm_generation_room(uint64_t context, uint64_t prompt)
{
    if (context == 0)
        return UINT64_MAX;
    return prompt < context ? context - prompt : 0;
}

/* ---- what the states hold -------------------------------------------------------------- */

/* Those of a run that failed may be fewer than were fed. */
static void
clip_held(struct xm_session *s)
{
    const uint64_t past = xm_token_runner_past(s->runner);
    if (past < s->held.n)
        s->held.n = (size_t)past;
}

size_t
xm_session_reusable(const struct xm_session *s, const int32_t *ids, size_t n)
{
    size_t same = 0;
    while (same < s->held.n && same + 1 < n && s->held.ids[same] == ids[same])
        same++;
    return same;
}

size_t
xm_session_held(const struct xm_session *s)
{
    return s->held.n;
}

static void
rewind_to(struct xm_session *s, size_t past)
{
    if (past < s->held.n)
        xm_token_runner_truncate(s->runner, past);
    clip_held(s);
}

/* What other sessions of the model have computed, where nothing is held. */
static enum xm_status
take_over(struct xm_session *s, const struct xm_token_list *prompt, struct xm_error *err)
{
    XM_TRY(xm_token_runner_match(s->runner, prompt->ids, prompt->n, err));
    const uint64_t past = xm_token_runner_past(s->runner);
    if (past > s->held.n && !xm_token_list_add_n(&s->held, prompt->ids, (size_t)past)) {
        xm_token_runner_truncate(s->runner, 0);
        return xm_no_memory(err, "the tokens");
    }
    return XM_OK;
}

/* Of the last `wanted` logits are wanted. */
static enum xm_status
feed(struct run *r, const int32_t *ids, size_t n, size_t wanted, struct xm_error *err)
{
    struct xm_session *s = r->session;
    if (!xm_token_list_add_n(&s->held, ids, n))
        return xm_no_memory(err, "the tokens");
    const double start = xm_clock_start(r->asked->clock);
    enum xm_status status = xm_token_runner_feed(s->runner, ids, n, wanted, err);
    xm_clock_add_run(r->asked->clock, start);
    clip_held(s);
    return status;
}

/* ---- choosing tokens --------------------------------------------------------------------- */

/* The sampler sees what the model sees, fed in this run or before. */
static enum xm_status
begin_sampling(struct xm_session *s, const struct xm_token_list *prompt,
               struct xm_error *err)
{
    uint64_t rows, vocabulary;
    xm_token_runner_logits(s->runner, &rows, &vocabulary);
    if (!s->scratch)
        s->scratch = xm_sampler_scratch_create((size_t)vocabulary);
    if (!s->scratch)
        return xm_fail(err, XM_NO_MEMORY, "no memory to sample from %" PRIu64 " tokens",
                       vocabulary);
    if (!s->sampler)
        XM_TRY(xm_sampler_create(&s->sampling, (size_t)vocabulary, &s->sampler, err));
    return xm_sampler_begin(s->sampler, prompt->ids, prompt->n, err);
}

static struct xm_next_token
next_token(const struct run *r)
{
    const struct xm_session *s = r->session;
    return (struct xm_next_token){s->package, r->asked, s->sampler, s->scratch, r->out};
}

static enum xm_status
choose_here(const struct run *r, int32_t *id, struct xm_error *err)
{
    uint64_t rows, vocabulary;
    const struct xm_next_token t = next_token(r);
    const float *logits = xm_token_runner_logits(r->session->runner, &rows, &vocabulary);
    return xm_next_token_choose(&t, logits + (rows - 1 - r->n_guessed) * vocabulary,
                                vocabulary, id, err);
}

/* Whether the device may choose token `n` of the text, as far as the session knows. */
static bool
is_for_device(const struct run *r, size_t n)
{
    struct xm_end_ids barred[XM_BARRED_LISTS];
    xm_generation_barred(r->session->package, r->asked, n, barred);
    return !r->never_ahead && r->asked->guesses == 0 && !r->asked->wants_log_probs &&
           barred[1].n == 0;
}

/* The ids that the package suppresses never come; they are those of barred[0] above. */
static void
bar_suppressed(const struct run *r, struct xm_token_choice *how,
               struct xm_seen_tokens *seen)
{
    struct xm_end_ids barred[XM_BARRED_LISTS];
    xm_generation_barred(r->session->package, r->asked, UINT64_MAX, barred);
    seen->barred = barred[0].ids;
    seen->n_barred = barred[0].n;
    how->adjusts |= barred[0].n > 0;
}

/* Commits the token of the previous choice, whose run ends here. */
static enum xm_status
choose_there(struct run *r, struct xm_device_choice *c, struct xm_error *err)
{
    struct xm_session *s = r->session;
    const double start = xm_clock_start(r->asked->clock);
    if (r->is_running && !xm_token_list_add(&s->held, r->running))
        return xm_no_memory(err, "the tokens");
    const enum xm_status status = xm_token_runner_choose(s->runner, c, err);
    clip_held(s);
    if (r->is_running)
        xm_clock_add_run(r->asked->clock, start);
    r->running = c->id;
    r->is_running = status == XM_OK && c->is_running;
    if (status == XM_OK)
        xm_sampler_skip(s->sampler);
    return status;
}

/* `left`: tokens still to choose after this one. */
static enum xm_status
choose(struct run *r, uint64_t left, int32_t *id, struct xm_error *err)
{
    struct xm_error why = {0};
    struct xm_device_choice c = {.more = left > 0};
    const bool asks = is_for_device(r, r->out->ids.n) &&
                      xm_sampler_on_device(r->session->sampler, &c.how, &c.seen);
    bar_suppressed(r, &c.how, &c.seen);
    const enum xm_status s = asks ? choose_there(r, &c, &why) : XM_UNSUPPORTED;
    *id = c.id;
    if (s == XM_UNSUPPORTED) {
        /* A prompt of several tokens refuses only the first choice. */
        r->never_ahead |= asks && r->out->ids.n > 0;
        XM_TRY(choose_here(r, id, err));
    } else if (s != XM_OK) {
        return xm_fail(err, s, "%s", why.text);
    }
    if (!xm_dry_run())
        xm_clock_add_token(r->asked->clock);
    return XM_OK;
}

static bool
ends(const struct run *r, int32_t id)
{
    const struct xm_next_token t = next_token(r);
    return xm_next_token_ends(&t, id);
}

/* ---- text -------------------------------------------------------------------------------- */

static enum xm_status
begin_answer(struct xm_session *s, const struct xm_token_list *prompt,
             struct xm_error *err)
{
    XM_TRY(xm_package_read(s->package, XM_PACKAGE_CHAT_TEMPLATE, err));
    if (!s->answer.tokenizer)
        xm_answer_init(&s->answer, s->package->tokenizer, s->package->chat_template);
    return xm_answer_begin(&s->answer, prompt->ids, prompt->n, err);
}

static enum xm_status
begin_text(struct run *r, struct xm_error *err)
{
    struct xm_session *s = r->session;
    const struct xm_generation *asked = r->asked;
    r->has_text = s->package && s->package->tokenizer;
    if (!r->has_text)
        return XM_OK;
    XM_TRY(xm_text_stream_begin(&r->text, s->package->tokenizer, asked, err));
    if (!asked->is_answer)
        return XM_OK;
    r->text.answer = &s->answer;
    return begin_answer(s, &r->out->prompt, err);
}

static void
tell(struct run *r, int32_t id, enum xm_answer_part part, const struct xm_strbuf *text)
{
    const struct xm_piece piece = {id, part, xm_strbuf_text(text), text->n};
    if (r->asked->on_piece)
        r->go_on &= r->asked->on_piece(&piece, r->asked->ctx);
}

/* One piece for a token; at the end one for each part that was held back. */
static enum xm_status
pass_on(struct run *r, int32_t id, struct xm_error *err)
{
    static const struct xm_strbuf nothing;
    const struct xm_text_stream *t = &r->text;
    xm_strbuf_add_n(&r->out->text, xm_strbuf_text(&t->text), t->text.n);
    if (t->thought.n)
        tell(r, id, XM_ANSWER_THOUGHT, &t->thought);
    if (t->text.n)
        tell(r, id, XM_ANSWER_TEXT, &t->text);
    if (id >= 0 && !t->thought.n && !t->text.n)
        tell(r, id, XM_ANSWER_NOTHING, &nothing);
    return xm_strbuf_ok(&r->out->text) ? XM_OK : xm_no_memory(err, "the text");
}

/* As a piece of its own, before the first token is there. */
static enum xm_status
echo(struct run *r, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    enum xm_status s =
        xm_generation_echo(r->session->package, r->asked, &r->out->prompt, &text, err);
    xm_strbuf_add_n(&r->out->text, xm_strbuf_text(&text), text.n);
    if (s == XM_OK && !(xm_strbuf_ok(&text) && xm_strbuf_ok(&r->out->text)))
        s = xm_no_memory(err, "the text");
    if (s == XM_OK && text.n)
        tell(r, -1, XM_ANSWER_TEXT, &text);
    xm_strbuf_free(&text);
    return s;
}

static enum xm_status
take_token(struct run *r, int32_t id, struct xm_error *err)
{
    if (!xm_token_list_add(&r->out->ids, id))
        return xm_no_memory(err, "the tokens");
    if (r->has_text)
        XM_TRY(xm_text_stream_push(&r->text, id, err));
    return pass_on(r, id, err);
}

/* It is none of the ids. */
static enum xm_status
take_end(struct run *r, int32_t id, struct xm_error *err)
{
    if (!r->has_text || !r->asked->keep_end)
        return XM_OK;
    XM_TRY(xm_text_stream_push(&r->text, id, err));
    return pass_on(r, id, err);
}

/* What is held back comes also when the run has failed: whoever shows it has to end it. */
static enum xm_status
end_text(struct run *r, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    if (r->has_text)
        s = xm_text_stream_finish(&r->text, err);
    if (r->has_text && s == XM_OK)
        s = pass_on(r, -1, err);
    return s;
}

/* ---- times ------------------------------------------------------------------------------- */

/* A clock that stands still while kernels are built, and the work done when it was started. */
struct stopwatch {
    struct xm_compiled *compiled;
    double start, built;
    struct xm_request_stats stats;
};

static double
built_s(struct xm_compiled *c)
{
    struct xm_compiled_stats stats = {0};
    if (c->ops->stats)
        c->ops->stats(c, &stats);
    return stats.builds.seconds;
}

/* Work done so far; none by a request of the reference. */
static struct xm_request_stats
stats_of(const struct xm_session *s)
{
    const struct xm_infer *r = xm_session_request(s);
    struct xm_request_stats stats = {0};
    if (r->ops->stats)
        r->ops->stats(r, &stats);
    return stats;
}

static void
start_watch(struct stopwatch *w, const struct xm_session *s)
{
    w->compiled = s->compiled;
    w->stats = stats_of(s);
    w->built = built_s(w->compiled);
    w->start = xm_now();
}

/* Seconds since the start; *built has those that building took besides. */
static double
read_watch(const struct stopwatch *w, double *built)
{
    *built = built_s(w->compiled) - w->built;
    const double s = xm_now() - w->start - *built;
    return s > 0.0 ? s : 0.0;
}

/* ---- a run ------------------------------------------------------------------------------- */

static enum xm_status
feed_prompt(struct run *r, struct xm_error *err)
{
    struct xm_session *s = r->session;
    const struct xm_token_list *prompt = &r->out->prompt;
    rewind_to(s, xm_session_reusable(s, prompt->ids, prompt->n));
    XM_TRY(take_over(s, prompt, err));
    const size_t past = s->held.n;
    XM_TRY(feed(r, prompt->ids + past, prompt->n - past, 1, err));
    r->out->times.prompt_tokens = prompt->n - past;
    r->out->reused = past;
    return begin_sampling(s, prompt, err);
}

static void
drop_guesses(struct run *r)
{
    rewind_to(r->session, r->session->held.n - r->n_guessed);
    r->n_guessed = 0;
}

/* Feeds what the states lack of prompt and answer, and guesses behind it. */
static enum xm_status
feed_text(struct run *r, const struct xm_token_list *text, size_t n, struct xm_error *err)
{
    const size_t past = r->session->held.n, n_guessed = text->n - n;
    uint64_t rows, vocabulary;
    XM_TRY(feed(r, text->ids + past, text->n - past, n_guessed + 1, err));
    xm_token_runner_logits(r->session->runner, &rows, &vocabulary);
    if (rows > n_guessed) {
        r->n_guessed = n_guessed;
        return XM_OK;
    }
    r->never_guess = true;
    rewind_to(r->session, past);
    return feed(r, text->ids + r->session->held.n, n - r->session->held.n, 1, err);
}

/* The last token of the answer, which the states do not hold yet, and at most `most` guesses. */
static enum xm_status
feed_guesses(struct run *r, size_t most, struct xm_error *err)
{
    const struct xm_generation_result *out = r->out;
    const size_t n = out->prompt.n + out->ids.n;
    struct xm_token_list text = {0};
    enum xm_status s = XM_NO_MEMORY;
    bool ok = xm_token_list_add_n(&text, out->prompt.ids, out->prompt.n) &&
              xm_token_list_add_n(&text, out->ids.ids, out->ids.n);
    const struct xm_guess guess =
        ok ? xm_prompt_lookup(text.ids, n, r->asked->guess_by, most)
           : (struct xm_guess){0};
    const size_t at = guess.n ? (size_t)(guess.ids - text.ids) : 0;
    for (size_t i = 0; ok && i < guess.n; i++)
        ok = xm_token_list_add(&text, text.ids[at + i]); /* the list moves as it grows */
    s = ok ? feed_text(r, &text, n, err)
           : xm_fail(err, s, "out of memory for the tokens");
    xm_token_list_free(&text);
    return s;
}

/* The token may have been guessed: then it is there. `left`: so many are to be chosen behind it. */
static enum xm_status
feed_chosen(struct run *r, int32_t id, uint64_t left, struct xm_error *err)
{
    const struct xm_token_list *held = &r->session->held;
    const size_t most = r->asked->guesses < left ? r->asked->guesses : (size_t)left - 1;
    if (r->n_guessed && held->ids[held->n - r->n_guessed] == id) {
        r->n_guessed--;
        return XM_OK;
    }
    if (r->is_running)
        return XM_OK;
    drop_guesses(r);
    return r->asked->guesses && !r->never_guess ? feed_guesses(r, most, err)
                                                : feed(r, &id, 1, 1, err);
}

static enum xm_status
feed_token(struct run *r, int32_t id, uint64_t left, struct xm_error *err)
{
    XM_TRY(feed_chosen(r, id, left, err));
    r->out->times.decode_tokens++;
    return xm_sampler_accept(r->session->sampler, &id, 1, err);
}

/* A text without a near end gets its memory as it grows. */
static void
announce(const struct run *r, uint64_t most)
{
    if (r->session->held.n == 0 && most <= XM_MOST_ANNOUNCED)
        xm_token_runner_expect(r->session->runner, r->out->prompt.n + most);
}

/* Kernels are built before the first token. */
static void
prepare_choices(const struct run *r, uint64_t most)
{
    const struct xm_session *s = r->session;
    const uint64_t vocabulary = xm_compiled_vocabulary(s->compiled);
    struct xm_token_choice how;
    struct xm_seen_tokens none;
    /* The host chooses the first token, and runs the second in the ordinary way. */
    if (most > 2 && vocabulary <= INT32_MAX && is_for_device(r, (size_t)most) &&
        xm_sampling_on_device(&s->sampling, (size_t)vocabulary, &how)) {
        bar_suppressed(r, &how, &none);
        xm_token_runner_prepare(s->runner, &how);
    }
}

/* The token of the last logits, passed on. *is_over: it is the last one. */
static enum xm_status
make_token(struct run *r, uint64_t left, int32_t *id, bool *is_over, struct xm_error *err)
{
    XM_TRY(choose(r, left, id, err));
    const bool is_end = ends(r, *id);
    XM_TRY(is_end ? take_end(r, *id, err) : take_token(r, *id, err));
    *is_over = is_end || r->text.stopped || !r->go_on;
    if (*is_over)
        r->out->finish = is_end || r->text.stopped ? XM_FINISH_STOP : XM_FINISH_CANCELLED;
    return XM_OK;
}

/* The prompt's time ends when the first token has been passed on, that of the others when the last
 * one has. */
static enum xm_status
generate(struct run *r, uint64_t most, struct xm_error *err)
{
    struct xm_session *s = r->session;
    struct xm_generation_times *times = &r->out->times;
    struct stopwatch watch;
    bool is_over = false;
    int32_t id = 0;
    double built;
    announce(r, most);
    start_watch(&watch, s);
    prepare_choices(r, most);
    XM_TRY(feed_prompt(r, err));
    if (most > 0)
        XM_TRY(make_token(r, most - 1, &id, &is_over, err));
    times->prompt_s = read_watch(&watch, &times->build_s);
    times->prompt_multiply_adds = stats_of(s).multiply_adds - watch.stats.multiply_adds;
    const double prompt_built = times->build_s;
    start_watch(&watch, s);
    for (uint64_t i = 1; i < most && !is_over; i++) {
        XM_TRY(feed_token(r, id, most - i, err));
        XM_TRY(make_token(r, most - i - 1, &id, &is_over, err));
        times->decode_s = read_watch(&watch, &built);
        times->build_s = prompt_built + built;
        times->decode_weight_bytes = stats_of(s).weight_bytes - watch.stats.weight_bytes;
    }
    if (!is_over)
        r->out->finish =
            most < r->asked->max_tokens ? XM_FINISH_CONTEXT : XM_FINISH_LENGTH;
    return XM_OK;
}

static enum xm_status
run_prompt(struct run *r, struct xm_error *err)
{
    const struct xm_generation *asked = r->asked;
    const size_t n = r->out->prompt.n;
    const uint64_t room = xm_generation_room(asked->context, n);
    struct xm_error why = {0};
    if (!r->go_on) {
        r->out->finish = XM_FINISH_CANCELLED;
        return XM_OK;
    }
    if (room == 0)
        return xm_fail(err, XM_INVALID,
                       "the prompt has %zu token%s, which leaves no room in a context of "
                       "%" PRIu64,
                       n, n == 1 ? "" : "s", asked->context);
    enum xm_status s =
        generate(r, room < asked->max_tokens ? room : asked->max_tokens, &why);
    xm_token_runner_stop(r->session->runner);
    drop_guesses(r);
    if (s == XM_CANCELLED) {
        r->out->finish = XM_FINISH_CANCELLED;
        s = XM_OK;
    }
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

enum xm_status
xm_session_run(struct xm_session *s, const struct xm_generation *run,
               struct xm_generation_result *out, struct xm_error *err)
{
    struct run r = {.session = s, .asked = run, .out = out, .go_on = true};
    xm_generation_result_free(out);
    XM_TRY(xm_prompt_encode(s->package, &run->prompt, xm_compiled_vocabulary(s->compiled),
                            &out->prompt, err));
    enum xm_status status = begin_text(&r, err);
    if (status == XM_OK) {
        status = echo(&r, err);
        status = status == XM_OK ? run_prompt(&r, err) : status;
        const enum xm_status ended = end_text(&r, err);
        status = status == XM_OK ? ended : status;
    }
    xm_text_stream_free(&r.text);
    return status;
}
