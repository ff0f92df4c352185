/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/session.h"

#include <inttypes.h>

#include "plugin/pipeline/prefix_store.h"
#include "plugin/pipeline/prompt_lookup.h"
#include "plugin/pipeline/text.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/dry_run.h"

struct xm_session {
    struct xm_compiled *compiled;
    struct xm_package *package; /* borrowed; may be NULL */
    struct xm_token_runner *runner;
    struct xm_prefix_store *prefixes; /* borrowed; may be NULL */
    struct xm_sampling sampling;
    /* shared by all texts of the session; NULL until the first logits */
    struct xm_sampler *sampler;
    struct xm_sampler_scratch *scratch; /* as `sampler` */
    struct xm_token_list held;          /* tokens that the states hold, in order */
};

/* The run in progress. */
struct run {
    struct xm_session *session;
    const struct xm_generation *asked;
    struct xm_generation_result *out;
    struct xm_text text;
    /* Number of drafted tokens, the last of `held`, that the states hold with their logits, but
     * that have not been verified yet. */
    size_t n_guessed;
    bool never_guess; /* the model returns logits of the last token only */
    bool never_ahead; /* the device does not choose tokens */
    bool is_running;  /* the device has chosen `running` and enqueued its run */
    int32_t running;
};

/* ---- life ---------------------------------------------------------------------------- */

/* Reads tokenizer and generation. A missing tokenizer, or one of an unknown kind, is accepted: then
 * the session has ids only. */
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
    s->compiled = compiled; /* referenced by the runner */
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
    xm_free(s);
}

void
xm_session_set_sampling(struct xm_session *s, const struct xm_sampling *sampling)
{
    s->sampling = *sampling;
    xm_sampler_free(s->sampler);
    s->sampler = NULL;
}

void
xm_session_set_prefix_store(struct xm_session *s, struct xm_prefix_store *p)
{
    s->prefixes = xm_token_runner_sequence(s->runner) ? p : NULL;
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

/* ---- the tokens that the states hold ----------------------------------------------------- */

/* Truncates `held` to the runner's positions: a failed run may hold fewer than were fed. */
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
    return n ? xm_same_tokens(s->held.ids, s->held.n, ids, n - 1) : 0;
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

/* Reuses positions that other sessions of the model have computed, if none are held, or positions
 * from the store. */
static enum xm_status
take_over(struct xm_session *s, const struct xm_token_list *prompt, struct xm_error *err)
{
    XM_TRY(xm_token_runner_match(s->runner, prompt->ids, prompt->n, err));
    if (s->prefixes)
        xm_prefix_store_load(s->prefixes, xm_token_runner_sequence(s->runner),
                             prompt->ids, prompt->n);
    clip_held(s);
    const uint64_t past = xm_token_runner_past(s->runner);
    const size_t held = s->held.n;
    if (past > held &&
        !xm_token_list_add_n(&s->held, prompt->ids + held, (size_t)past - held)) {
        xm_token_runner_truncate(s->runner, 0);
        return xm_no_memory(err, "the tokens");
    }
    return XM_OK;
}

static void
keep_prefix(struct xm_session *s)
{
    if (s->prefixes)
        xm_prefix_store_save(s->prefixes, xm_token_runner_sequence(s->runner),
                             s->held.ids, s->held.n);
}

/* Feeds ids[n] and computes the logits of the last `wanted` tokens. */
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

/* Feeds the tokens of the text that the states do not hold yet. */
static enum xm_status
feed_rest(struct run *r, struct xm_error *err)
{
    const struct xm_token_list *t = &r->text.tokens;
    const size_t held = r->session->held.n;
    return feed(r, t->ids + held, t->n - held, 1, err);
}

/* ---- choosing tokens --------------------------------------------------------------------- */

/* Creates the sampler; it sees all tokens of the text, including those fed in earlier runs. */
static enum xm_status
begin_sampling(struct run *r, struct xm_error *err)
{
    struct xm_session *s = r->session;
    uint64_t rows, vocabulary;
    xm_token_runner_logits(s->runner, &rows, &vocabulary);
    if (!s->scratch)
        s->scratch = xm_sampler_scratch_create((size_t)vocabulary);
    if (!s->scratch)
        return xm_fail(err, XM_NO_MEMORY,
                       "out of memory to sample from %" PRIu64 " tokens", vocabulary);
    return xm_text_begin_sampling(&r->text, vocabulary, err);
}

static enum xm_status
choose_here(struct run *r, int32_t *id, struct xm_error *err)
{
    const struct xm_session *s = r->session;
    uint64_t rows, vocabulary;
    const float *logits = xm_token_runner_logits(s->runner, &rows, &vocabulary);
    return xm_text_choose(&r->text, s->scratch,
                          logits + (rows - 1 - r->n_guessed) * vocabulary, vocabulary, id,
                          err);
}

/* Chooses on the device. If the previous token was running, its run ends here, and it becomes a
 * held token. */
static enum xm_status
choose_there(struct run *r, struct xm_device_choices *c, struct xm_error *err)
{
    struct xm_session *s = r->session;
    const double start = xm_clock_start(r->asked->clock);
    if (r->is_running && !xm_token_list_add(&s->held, r->running))
        return xm_no_memory(err, "the tokens");
    const enum xm_status status = xm_token_runner_choose(s->runner, c, err);
    clip_held(s);
    if (r->is_running)
        xm_clock_add_run(r->asked->clock, start);
    r->running = c->list->id;
    r->is_running = status == XM_OK && c->is_running;
    if (status == XM_OK)
        xm_text_chosen_on_device(&r->text);
    return status;
}

static enum xm_status
choose(struct run *r, int32_t *id, struct xm_error *err)
{
    struct xm_error why = {0};
    struct xm_device_choice one = {.id = 0};
    struct xm_device_choices c = {&one, 1, .more = xm_text_left(&r->text) > 1};
    const bool asks = !r->never_ahead && xm_text_on_device(&r->text, &one.how, &one.seen);
    const enum xm_status s = asks ? choose_there(r, &c, &why) : XM_UNSUPPORTED;
    *id = one.id;
    if (s == XM_UNSUPPORTED) {
        /* after a prompt of several tokens the device refuses the first choice only */
        r->never_ahead |= asks && r->out->ids.n > 0;
        XM_TRY(choose_here(r, id, err));
    } else if (s != XM_OK) {
        return xm_fail(err, s, "%s", why.text);
    }
    if (!xm_dry_run())
        xm_clock_add_token(r->asked->clock);
    return XM_OK;
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
    XM_TRY(feed_rest(r, err));
    r->out->times.prompt_tokens = prompt->n - past;
    r->out->times.reused_tokens = r->out->reused = past;
    return begin_sampling(r, err);
}

static void
drop_guesses(struct run *r)
{
    rewind_to(r->session, r->session->held.n - r->n_guessed);
    r->n_guessed = 0;
}

/* Feeds the tokens of the text that the states lack, and after them at most `most` drafted
 * tokens. */
static enum xm_status
feed_guesses(struct run *r, size_t most, struct xm_error *err)
{
    const struct xm_token_list *t = &r->text.tokens;
    const size_t past = r->session->held.n;
    const struct xm_guess guess =
        xm_prompt_lookup(t->ids, t->n, r->asked->guess_by, most);
    struct xm_token_list ids = {0};
    uint64_t rows, vocabulary;
    const bool ok = xm_token_list_add_n(&ids, t->ids + past, t->n - past) &&
                    xm_token_list_add_n(&ids, guess.ids, guess.n);
    const enum xm_status s =
        ok ? feed(r, ids.ids, ids.n, guess.n + 1, err) : xm_no_memory(err, "the tokens");
    xm_token_list_free(&ids);
    XM_TRY(s);
    xm_token_runner_logits(r->session->runner, &rows, &vocabulary);
    if (rows > guess.n) {
        r->n_guessed = guess.n;
        return XM_OK;
    }
    r->never_guess = true;
    rewind_to(r->session, past);
    return feed_rest(r, err);
}

/* Feeds the last token of the text, unless the states hold it as a drafted token, or the device
 * already runs it. */
static enum xm_status
feed_token(struct run *r, struct xm_error *err)
{
    const struct xm_token_list *held = &r->session->held, *t = &r->text.tokens;
    const uint64_t left = xm_text_left(&r->text);
    const size_t most = r->asked->guesses < left ? r->asked->guesses : (size_t)left - 1;
    if (r->n_guessed && held->ids[held->n - r->n_guessed] == t->ids[t->n - 1]) {
        r->n_guessed--;
        return XM_OK;
    }
    if (r->is_running)
        return XM_OK;
    drop_guesses(r);
    return r->asked->guesses && !r->never_guess ? feed_guesses(r, most, err)
                                                : feed_rest(r, err);
}

/* Announces the final length. Longer texts get memory as they grow. */
static void
announce(const struct run *r)
{
    const uint64_t most = r->text.most;
    if (r->session->held.n == 0 && most <= XM_MOST_ANNOUNCED)
        xm_token_runner_expect(r->session->runner, r->out->prompt.n + most);
}

/* Builds kernels for choosing on the device before the first token. */
static void
prepare_choices(const struct run *r)
{
    const struct xm_session *s = r->session;
    struct xm_token_choice how;
    /* the host chooses the first token, and the second one's run is an ordinary one */
    if (r->text.most > 2 &&
        xm_text_will_be_on_device(&r->text, xm_compiled_vocabulary(s->compiled), &how))
        xm_token_runner_prepare(s->runner, &how);
}

/* Chooses a token from the last logits and passes it on. */
static enum xm_status
make_token(struct run *r, struct xm_error *err)
{
    int32_t id = 0;
    XM_TRY(choose(r, &id, err));
    return xm_text_take(&r->text, id, err);
}

static struct xm_work
work_done(const struct xm_session *s)
{
    return xm_work_done(s->compiled, xm_session_request(s));
}

/* The prompt's time ends when the first token has been passed on, the decode time when the last one
 * has. */
static enum xm_status
generate(struct run *r, struct xm_error *err)
{
    const struct xm_session *s = r->session;
    struct xm_generation_times *times = &r->out->times;
    announce(r);
    struct xm_work before = work_done(s), now;
    prepare_choices(r);
    XM_TRY(feed_prompt(r, err));
    if (!r->text.is_over)
        XM_TRY(make_token(r, err));
    now = work_done(s);
    struct xm_work did = xm_work_between(&before, &now);
    const double prompt_built = did.built;
    times->prompt_s = did.seconds;
    times->prompt_multiply_adds = did.multiply_adds;
    times->build_s = did.built;
    before = now;
    while (!r->text.is_over) {
        XM_TRY(feed_token(r, err));
        times->decode_tokens++;
        XM_TRY(make_token(r, err));
        now = work_done(s);
        did = xm_work_between(&before, &now);
        times->decode_s = did.seconds;
        times->build_s = prompt_built + did.built;
        times->decode_weight_bytes = did.weight_bytes;
    }
    return XM_OK;
}

static enum xm_status
make_text(struct run *r, struct xm_error *err)
{
    struct xm_error why = {0};
    if (r->text.is_over && r->out->finish == XM_FINISH_CANCELLED)
        return XM_OK;
    enum xm_status s = generate(r, &why);
    xm_token_runner_stop(r->session->runner);
    drop_guesses(r);
    if (s == XM_CANCELLED) {
        r->out->finish = XM_FINISH_CANCELLED;
        s = XM_OK;
    }
    if (s == XM_OK)
        keep_prefix(r->session);
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

enum xm_status
xm_session_run(struct xm_session *s, const struct xm_generation *run,
               struct xm_generation_result *out, struct xm_error *err)
{
    struct run r = {.session = s, .asked = run, .out = out};
    const struct xm_text_source from = {s->package, run, &s->sampling, &s->sampler};
    xm_generation_result_free(out);
    XM_TRY(xm_prompt_encode(s->package, &run->prompt, xm_compiled_vocabulary(s->compiled),
                            &out->prompt, err));
    if (run->is_answer && s->package && s->package->tokenizer)
        XM_TRY(xm_package_read(s->package, XM_PACKAGE_CHAT_TEMPLATE, err));
    enum xm_status status =
        xm_text_begin(&r.text, &from, out->prompt.ids, out->prompt.n, out, err);
    if (status == XM_OK) {
        status = make_text(&r, err);
        const enum xm_status ended = xm_text_end(&r.text, err);
        status = status == XM_OK ? ended : status;
    }
    xm_text_free(&r.text);
    return status;
}
