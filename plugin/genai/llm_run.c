/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a call of generate: config and prompt in, texts and metrics out. One text runs in a session,
 * several texts of one prompt run in parallel.
 */
#include <limits.h>
#include <string.h>

#include "plugin/genai/genai.h"
#include "plugin/pipeline/beam_search.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"

enum {
    MOST_SLOTS = 64,
    GUESSES = 5, /* with the property prompt_lookup, if the config sets no number */
    GUESS_BY = 3
};

/* The state of a call. */
struct run {
    struct xm_genai_call *call;
    ov_genai_generation_config config; /* the effective one */
    struct xm_token_list prompt;
    struct xm_token_list ends;
    struct xm_slice *stops; /* owned; slices of config's strings */
    struct xm_generation asked;
    struct xm_generation_clock clock;
};

/* ---- the config -------------------------------------------------------------------------- */

enum xm_status
xm_genai_config_inherit(ov_genai_generation_config *c,
                        const ov_genai_generation_config *from, struct xm_error *err)
{
    const bool has_own = c->n_stop_ids > 0;
    for (size_t i = 0; !has_own && i < from->n_stop_ids; i++)
        XM_TRY(xm_genai_config_add_stop_id(c, from->stop_ids[i], err));
    if (c->eos_token_id >= 0 || from->eos_token_id < 0)
        return XM_OK;
    c->eos_token_id = from->eos_token_id;
    return xm_genai_config_add_stop_id(c, c->eos_token_id, err);
}

static enum xm_status
find_config(struct run *r, struct xm_error *err)
{
    const ov_genai_generation_config *own = &r->call->pipe->config;
    const ov_genai_generation_config *given = r->call->config;
    XM_TRY(xm_genai_config_copy(given ? given : own, &r->config, err));
    XM_TRY(xm_genai_config_inherit(&r->config, own, err));
    XM_TRY(xm_genai_config_check(&r->config, err));
    if (!r->call->streamer ||
        (r->config.num_return_sequences == 1 && r->config.num_beams <= 1))
        return XM_OK;
    return xm_fail(err, XM_UNSUPPORTED,
                   "a streamer supports one text without beams, but num_return_sequences "
                   "is %zu and num_beams is %zu",
                   r->config.num_return_sequences, r->config.num_beams);
}

static uint32_t
ngram_of(const ov_genai_generation_config *c)
{
    return c->no_repeat_ngram_size <= UINT32_MAX ? (uint32_t)c->no_repeat_ngram_size : 0;
}

/* Converts the sampling options. Without do_sample the likeliest token after the penalties is
 * taken. */
static struct xm_sampling
sampling_of(const ov_genai_generation_config *c)
{
    struct xm_sampling s;
    xm_sampling_init(&s);
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        if (!row->genai || !xm_sampling_is_number(row) || (row->draws && !c->do_sample))
            continue;
        const double x = xm_genai_config_number(c, row->genai);
        xm_sampling_set(&s, row,
                        x > row->most && row->kind != XM_SAMPLING_REAL ? 0.0 : x);
    }
    s.seed = c->rng_seed;
    s.only_new = true;
    return s;
}

static enum xm_status
find_ends(struct run *r, struct xm_error *err)
{
    const ov_genai_generation_config *c = &r->config;
    r->stops = xm_calloc(c->n_stops ? c->n_stops : 1, sizeof(*r->stops));
    bool ok = r->stops != NULL;
    for (size_t i = 0; ok && i < c->n_stops; i++)
        r->stops[i] = xm_slice_of(c->stops[i], strlen(c->stops[i]));
    for (size_t i = 0; ok && i < c->n_stop_ids; i++) {
        if (c->stop_ids[i] >= 0 && c->stop_ids[i] <= INT32_MAX)
            ok = xm_token_list_add(&r->ends, (int32_t)c->stop_ids[i]);
    }
    return ok ? XM_OK : xm_no_memory(err, "what ends a text");
}

/* Finds the maximum number of tokens. Call it when the prompt's tokens are known. */
static enum xm_status
find_limit(struct run *r, struct xm_error *err)
{
    const ov_genai_generation_config *c = &r->config;
    struct xm_generation *g = &r->asked;
    g->max_tokens = UINT64_MAX;
    if (c->max_new_tokens != SIZE_MAX) {
        g->max_tokens = c->max_new_tokens;
    } else if (c->max_length != SIZE_MAX) {
        if (c->max_length <= r->prompt.n)
            return xm_fail(err, XM_INVALID,
                           "the prompt has %zu token%s, which leaves no token for an "
                           "answer within max_length, %zu",
                           r->prompt.n, xm_plural(r->prompt.n), c->max_length);
        g->max_tokens = c->max_length - r->prompt.n;
    } else {
        g->context = r->call->pipe->package->facts.context;
    }
    return XM_OK;
}

/* Sets up prompt lookup, which sampled texts do not use. */
static void
find_guesses(struct run *r)
{
    const ov_genai_generation_config *c = &r->config;
    if (c->do_sample || (c->num_assistant_tokens > 0 && c->max_ngram_size == 0))
        return;
    const bool is_default = r->call->pipe->looks_up && c->num_assistant_tokens == 0;
    r->asked.guesses = is_default ? GUESSES : c->num_assistant_tokens;
    r->asked.guess_by = is_default ? GUESS_BY : c->max_ngram_size;
}

static enum xm_status
find_wish(struct run *r, struct xm_error *err)
{
    struct xm_genai_call *call = r->call;
    const ov_genai_generation_config *c = &r->config;
    struct xm_prompt prompt = call->prompt;
    prompt.clock = &r->clock;
    XM_TRY(xm_prompt_encode(call->pipe->package, &prompt,
                            xm_compiled_vocabulary(call->pipe->compiled), &r->prompt,
                            err));
    XM_TRY(find_ends(r, err));
    r->asked = (struct xm_generation){
        .prompt = {.kind = XM_PROMPT_IDS, .ids = r->prompt.ids, .n = r->prompt.n},
        .stops = r->stops,
        .n_stops = c->n_stops,
        .ignore_ends = c->ignore_eos,
        .ends = r->ends.ids,
        .n_ends = r->ends.n,
        .has_ends = true,
        .keep_end = true,
        .min_tokens = c->min_new_tokens,
        .keep_stop = c->include_stop_str_in_output,
        .drop_blanks = true,
        .echo = c->echo,
        .wants_log_probs = c->logprobs > 0,
        .clock = &r->clock,
    };
    find_guesses(r);
    return find_limit(r, err);
}

/* ---- texts --------------------------------------------------------------------------------- */

static bool
on_piece(const struct xm_piece *piece, void *ctx)
{
    struct xm_genai_call *call = ctx;
    if (piece->n == 0)
        return true;
    const ov_genai_streaming_status_e s =
        call->streamer->callback_func(piece->text, call->streamer->args);
    call->is_cancelled |= s == OV_GENAI_STREAMING_STATUS_CANCEL;
    return s == OV_GENAI_STREAMING_STATUS_RUNNING;
}

static enum xm_status
run_session(struct run *r, const struct xm_sampling *sampling,
            struct xm_generation_result *out, struct xm_error *err)
{
    ov_genai_llm_pipeline *p = r->call->pipe;
    if (!p->session)
        XM_TRY(xm_session_create(p->compiled, p->package, &p->session, err));
    xm_session_set_sampling(p->session, sampling);
    return xm_session_run(p->session, &r->asked, out, err);
}

static enum xm_status
make_text(struct run *r, struct xm_error *err)
{
    const struct xm_sampling sampling = sampling_of(&r->config);
    if (r->call->streamer) {
        r->asked.on_piece = on_piece;
        r->asked.ctx = r->call;
    }
    return run_session(r, &sampling, r->call->results->texts, err);
}

/* Generates texts one after the other, for models that cannot run texts in parallel; the results
 * are the same. */
static enum xm_status
make_texts_in_turn(struct run *r, size_t n, struct xm_error *err)
{
    struct xm_sampling sampling = sampling_of(&r->config);
    for (size_t i = 0; i < n; i++, sampling.seed++)
        XM_TRY(run_session(r, &sampling, &r->call->results->texts[i], err));
    return XM_OK;
}

static enum xm_status
make_texts_together(struct run *r, size_t n, struct xm_error *err)
{
    struct xm_generation_result *texts = r->call->results->texts;
    struct xm_generation_times times;
    const struct xm_parallel_run run = {
        .prompts = &r->prompt,
        .n_prompts = 1,
        .n_texts = n,
        .slots = n < MOST_SLOTS ? n : MOST_SLOTS,
        .each = r->asked,
        .sampling = sampling_of(&r->config),
    };
    XM_TRY(xm_parallel_generate(r->call->pipe->parallel, &run, texts, &times, err));
    for (size_t i = 0; i < n; i++) {
        if (texts[i].finish == XM_FINISH_FAILED)
            return xm_fail(err, texts[i].error.status, "text %zu: %s", i + 1,
                           texts[i].error.text);
    }
    return XM_OK;
}

static enum xm_status
search_texts(struct run *r, size_t n, struct xm_error *err)
{
    static const enum xm_beam_stop stops[] = {[EARLY] = XM_BEAM_EARLY,
                                              [HEURISTIC] = XM_BEAM_HEURISTIC,
                                              [NEVER] = XM_BEAM_NEVER};
    const ov_genai_generation_config *c = &r->config;
    ov_genai_llm_pipeline *p = r->call->pipe;
    ov_genai_decoded_results *results = r->call->results;
    const struct xm_beam_wish wish = {
        .beams = c->num_beams,
        .groups = c->num_beam_groups,
        .returned = n,
        .no_repeat_ngram = ngram_of(c),
        .diversity = c->num_beam_groups > 1 ? c->diversity_penalty : 0.0f,
        .length_penalty = c->length_penalty,
        .stop = stops[c->stop_criteria]};
    return xm_beam_search(p->compiled, p->package, &r->asked, &wish, results->texts,
                          &results->n, err);
}

static enum xm_status
make_texts(struct run *r, size_t n, struct xm_error *err)
{
    ov_genai_llm_pipeline *p = r->call->pipe;
    struct xm_error why = {0};
    const enum xm_status s =
        p->parallel ? XM_OK
                    : xm_scheduler_create(p->compiled, p->package, &p->parallel, &why);
    if (s == XM_UNSUPPORTED)
        return make_texts_in_turn(r, n, err);
    return s == XM_OK ? make_texts_together(r, n, err) : xm_fail(err, s, "%s", why.text);
}

/* ---- metrics ------------------------------------------------------------------------------- */

static bool
add_ms(ov_genai_perf_metrics *m, enum xm_genai_measure which, double seconds)
{
    return xm_genai_values_add(&m->values[which], seconds * 1000.0);
}

static bool
add_tokens(const struct run *r, ov_genai_perf_metrics *m)
{
    const struct xm_time_list *tokens = &r->clock.tokens, *runs = &r->clock.runs;
    double inference = 0.0;
    bool ok = !r->clock.failed;
    for (size_t i = 0; ok && i < tokens->n; i++)
        ok = i == 0 ? add_ms(m, XM_GENAI_TTFT, tokens->s[i] - r->call->start)
                    : add_ms(m, XM_GENAI_TPOT, tokens->s[i] - tokens->s[i - 1]);
    for (size_t i = 0; ok && i < runs->n; i++) {
        inference += runs->s[i];
        ok = add_ms(m, XM_GENAI_IPOT, runs->s[i]);
    }
    return ok && add_ms(m, XM_GENAI_INFERENCE, inference);
}

static enum xm_status
find_metrics(const struct run *r, struct xm_error *err)
{
    ov_genai_perf_metrics *m = &r->call->results->metrics;
    const struct xm_generation_clock *c = &r->clock;
    m->load_ms = r->call->pipe->load_ms;
    m->input = r->prompt.n;
    m->generated = c->tokens.n;
    bool ok = add_tokens(r, m) && add_ms(m, XM_GENAI_TOKENISE, c->tokenise_s) &&
              add_ms(m, XM_GENAI_DETOKENISE, c->detokenise_s) &&
              (!c->has_template || add_ms(m, XM_GENAI_TEMPLATE, c->template_s)) &&
              add_ms(m, XM_GENAI_GENERATE, xm_now() - r->call->start);
    return ok ? XM_OK : xm_no_memory(err, "metrics");
}

static enum xm_status
find_echo(const struct run *r, struct xm_error *err)
{
    struct xm_strbuf echo = {0};
    const enum xm_status s = xm_generation_echo(r->call->pipe->package, &r->asked,
                                                r->prompt.ids, r->prompt.n, &echo, err);
    r->call->echoed = echo.n;
    xm_strbuf_free(&echo);
    return s;
}

/* ---- a call -------------------------------------------------------------------------------- */

static enum xm_status
run_all(struct run *r, struct xm_error *err)
{
    XM_TRY(find_config(r, err));
    XM_TRY(find_wish(r, err));
    /* texts without generated tokens are equal: one copy of the prompt is enough */
    const bool has_answers = r->asked.max_tokens > 0;
    const size_t n = has_answers ? r->config.num_return_sequences : 1;
    ov_genai_decoded_results *results = r->call->results;
    results->texts = xm_calloc(n, sizeof(*results->texts));
    if (!results->texts)
        return xm_no_memory(err, "%zu texts", n);
    results->n = n;
    if (r->config.num_beams > 1 && has_answers)
        XM_TRY(search_texts(r, n, err));
    else
        XM_TRY(n == 1 ? make_text(r, err) : make_texts(r, n, err));
    XM_TRY(find_echo(r, err));
    return find_metrics(r, err);
}

enum xm_status
xm_genai_run(struct xm_genai_call *call, struct xm_error *err)
{
    struct run r = {.call = call};
    const enum xm_status s = run_all(&r, err);
    xm_genai_config_clear(&r.config);
    xm_token_list_free(&r.prompt);
    xm_token_list_free(&r.ends);
    xm_free(r.stops);
    xm_generation_clock_free(&r.clock);
    return s;
}
