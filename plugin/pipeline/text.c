/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/pipeline/text_grammar.h"
#include "plugin/text/log_sum_exp.h"
#include "runtime/dry_run.h"
#include "runtime/util/number.h"

/* ---- pieces ------------------------------------------------------------------------------- */

static void
tell(struct xm_text *t, int32_t id, enum xm_answer_part part,
     const struct xm_strbuf *text)
{
    const struct xm_generation *asked = t->from.asked;
    const struct xm_tool_calls *calls = &t->out->calls;
    const struct xm_piece piece = {
        id,      part,   xm_strbuf_text(text),
        text->n, t->out, part == XM_ANSWER_CALL ? &calls->list[calls->n - 1] : NULL};
    if (asked->on_piece)
        t->goes_on &= asked->on_piece(&piece, asked->ctx);
}

/* Passes on one piece for a token, or at the end (id -1) one piece for each part that was held
 * back. */
static enum xm_status
pass_on(struct xm_text *t, int32_t id, struct xm_error *err)
{
    static const struct xm_strbuf nothing;
    const struct xm_text_stream *s = &t->stream;
    xm_strbuf_add_n(&t->out->text, xm_strbuf_text(&s->text), s->text.n);
    if (s->thought.n)
        tell(t, id, XM_ANSWER_THOUGHT, &s->thought);
    if (s->text.n)
        tell(t, id, XM_ANSWER_TEXT, &s->text);
    if (s->call.n) {
        const struct xm_tool_calls *calls = &t->answer.calls;
        XM_TRY(xm_tool_calls_add(&t->out->calls, &calls->list[calls->n - 1], err));
        tell(t, id, XM_ANSWER_CALL, &s->call);
    }
    if (id >= 0 && !s->thought.n && !s->text.n && !s->call.n)
        tell(t, id, XM_ANSWER_NOTHING, &nothing);
    return xm_strbuf_ok(&t->out->text) ? XM_OK : xm_no_memory(err, "the text");
}

static enum xm_status
echo(struct xm_text *t, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    enum xm_status s =
        xm_generation_echo(t->from.package, t->from.asked, t->tokens.ids,
                           t->n_prompt + t->from.asked->n_forced, &text, err);
    xm_strbuf_add_n(&t->out->text, xm_strbuf_text(&text), text.n);
    if (s == XM_OK && !(xm_strbuf_ok(&text) && xm_strbuf_ok(&t->out->text)))
        s = xm_no_memory(err, "the text");
    if (s == XM_OK && text.n)
        tell(t, -1, XM_ANSWER_TEXT, &text);
    xm_strbuf_free(&text);
    return s;
}

static enum xm_status
begin_stream(struct xm_text *t, struct xm_error *err)
{
    const struct xm_package *p = t->from.package;
    if (!p || !p->tokenizer)
        return XM_OK;
    XM_TRY(xm_text_stream_begin(&t->stream, p->tokenizer, t->from.asked, err));
    t->has_text = true;
    if (!t->from.asked->is_answer)
        return XM_OK;
    xm_answer_init(&t->answer, p->tokenizer, p->chat_template);
    t->answer.tools = t->from.asked->tools;
    t->stream.answer = &t->answer;
    XM_TRY(xm_answer_begin(&t->answer, t->tokens.ids, t->n_prompt, err));
    /* with marks, newlines before a call are not text */
    t->answer.at_start |= t->from.asked->grammar_has_marks;
    return XM_OK;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static void
finish(struct xm_text *t, enum xm_finish why)
{
    t->is_over = true;
    t->out->finish = why;
}

/* Ends a text that has t->most generated tokens: max_tokens or the context was reached. */
static void
finish_by_length(struct xm_text *t)
{
    finish(t, t->most < t->from.asked->max_tokens ? XM_FINISH_CONTEXT : XM_FINISH_LENGTH);
}

enum xm_status
xm_text_begin(struct xm_text *t, const struct xm_text_source *from, const int32_t *prompt,
              size_t n, struct xm_generation_result *out, struct xm_error *err)
{
    *t = (struct xm_text){.from = *from, .out = out, .n_prompt = n, .goes_on = true};
    out->stop = 0;
    t->most = xm_generation_most(from->asked, n);
    XM_TRY(xm_generation_check_room(from->asked->context, n, err));
    if (!xm_token_list_add_n(&t->tokens, prompt, n))
        return xm_no_memory(err, "the tokens");
    XM_TRY(begin_stream(t, err));
    if (from->asked->grammar && !xm_dry_run())
        XM_TRY(xm_text_grammar_begin(t, err));
    if (from->asked->n_forced == 0)
        XM_TRY(echo(t, err));
    if (!t->goes_on)
        finish(t, XM_FINISH_CANCELLED);
    else if (t->most == 0)
        finish_by_length(t);
    return XM_OK;
}

void
xm_text_free(struct xm_text *t)
{
    xm_token_list_free(&t->tokens);
    xm_sampler_free(t->own_sampler);
    xm_text_stream_free(&t->stream);
    xm_answer_free(&t->answer);
    xm_constraint_free(t->constraint);
    *t = (struct xm_text){0};
}

uint64_t
xm_text_left(const struct xm_text *t)
{
    return t->is_over ? 0 : t->most - t->out->ids.n;
}

/* ---- probabilities -------------------------------------------------------------------------- */

/* Inserts a token into list[most], sorted by probability; at equal probability the lower id comes
 * first. */
static void
insert(struct xm_likely_token *list, size_t most, struct xm_likely_token token)
{
    size_t at = most - 1;
    for (; at > 0 && (list[at - 1].id < 0 || token.log_prob > list[at - 1].log_prob);
         at--)
        list[at] = list[at - 1];
    list[at] = token;
}

static enum xm_status
note_likeliest(struct xm_likely_tokens *out, size_t most, const float *row, uint64_t n,
               double sum, struct xm_error *err)
{
    struct xm_likely_token *grown =
        xm_grow(out->values, &out->capacity, out->n + most, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "probabilities");
    out->values = grown;
    struct xm_likely_token *list = grown + out->n;
    for (size_t i = 0; i < most; i++)
        list[i] = (struct xm_likely_token){.id = -1};
    for (uint64_t i = 0; i < n; i++) {
        const float log_prob = (float)((double)row[i] - sum);
        if (list[most - 1].id < 0 || log_prob > list[most - 1].log_prob)
            insert(list, most, (struct xm_likely_token){(int32_t)i, log_prob});
    }
    out->n += most;
    return XM_OK;
}

static enum xm_status
note_log_prob(struct xm_log_probs *out, double log_prob, struct xm_error *err)
{
    float *grown = xm_grow(out->values, &out->capacity, out->n + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "probabilities");
    out->values = grown;
    out->values[out->n++] = (float)log_prob;
    return XM_OK;
}

static bool
is_end(const struct xm_text *t, int32_t id)
{
    return xm_generation_is_end(t->from.package, t->from.asked, id);
}

/* Whether the next token is given by the caller instead of chosen. */
static bool
is_forced(const struct xm_text *t)
{
    return t->out->ids.n < t->from.asked->n_forced;
}

static bool
ends(const struct xm_text *t, int32_t id)
{
    return !is_forced(t) && is_end(t, id);
}

static enum xm_status
note_probabilities(struct xm_text *t, const float *row, uint64_t n, int32_t id,
                   struct xm_error *err)
{
    const struct xm_generation *asked = t->from.asked;
    if (ends(t, id) || (!asked->wants_log_probs && asked->n_likeliest == 0))
        return XM_OK;
    const double sum = xm_log_sum_exp(row, n);
    if (asked->wants_log_probs)
        XM_TRY(note_log_prob(&t->out->log_probs, (double)row[id] - sum, err));
    return asked->n_likeliest
               ? note_likeliest(&t->out->likeliest, asked->n_likeliest, row, n, sum, err)
               : XM_OK;
}

/* ---- tokens -------------------------------------------------------------------------------- */

static struct xm_sampler **
sampler_of(struct xm_text *t)
{
    return t->from.sampler ? t->from.sampler : &t->own_sampler;
}

/* For the sampler, forced tokens are part of the prompt. */
static enum xm_status
begin_sampler_with_forced(const struct xm_text *t, struct xm_sampler *s,
                          struct xm_error *err)
{
    const struct xm_generation *asked = t->from.asked;
    struct xm_token_list all = {0};
    const bool ok = xm_token_list_add_n(&all, t->tokens.ids, t->n_prompt) &&
                    xm_token_list_add_n(&all, asked->forced, asked->n_forced);
    const enum xm_status status =
        ok ? xm_sampler_begin(s, all.ids, all.n, err) : xm_no_memory(err, "the tokens");
    xm_token_list_free(&all);
    return status;
}

enum xm_status
xm_text_begin_sampling(struct xm_text *t, uint64_t vocabulary, struct xm_error *err)
{
    struct xm_sampler **s = sampler_of(t);
    if (!*s)
        XM_TRY(xm_sampler_create(t->from.sampling, (size_t)vocabulary, s, err));
    XM_TRY(xm_sampler_begin(*s, t->tokens.ids, t->n_prompt, err));
    return t->from.asked->n_forced ? begin_sampler_with_forced(t, *s, err) : XM_OK;
}

static enum xm_status
find_limits(struct xm_text *t, uint64_t vocabulary, struct xm_text_limits *out,
            struct xm_error *err)
{
    if (t->constraint)
        return xm_text_grammar_limit(t, vocabulary, out, err);
    *out = (struct xm_text_limits){0};
    xm_generation_barred(t->from.package, t->from.asked, t->out->ids.n, out->barred);
    return XM_OK;
}

/* Tells the sampler which tokens must not be chosen next. */
static enum xm_status
restrict_choice(struct xm_text *t, struct xm_sampler *sampler, uint64_t vocabulary,
                struct xm_error *err)
{
    struct xm_text_limits limits;
    XM_TRY(find_limits(t, vocabulary, &limits, err));
    if (limits.is_stuck)
        return xm_fail(err, XM_INVALID,
                       "after %zu token%s of the text, the grammar allows no token of "
                       "the vocabulary",
                       t->out->ids.n, xm_plural(t->out->ids.n));
    if (limits.allowed.words)
        xm_sampler_allow(sampler, limits.allowed.words, limits.allowed.n);
    for (size_t i = 0; i < XM_LIMIT_LISTS; i++)
        if (limits.barred[i].n > 0)
            XM_TRY(
                xm_sampler_bar(sampler, limits.barred[i].ids, limits.barred[i].n, err));
    return XM_OK;
}

enum xm_status
xm_text_choose(struct xm_text *t, struct xm_sampler_scratch *scratch, const float *row,
               uint64_t vocabulary, int32_t *id, struct xm_error *err)
{
    struct xm_sampler *sampler = *sampler_of(t);
    *id = 0;
    if (xm_dry_run())
        return XM_OK;
    if (is_forced(t)) {
        *id = t->from.asked->forced[t->out->ids.n];
        if ((uint64_t)*id >= vocabulary)
            return xm_fail(err, XM_INVALID,
                           "token id %" PRId32 " is not in the vocabulary of %" PRIu64,
                           *id, vocabulary);
        return note_probabilities(t, row, vocabulary, *id, err);
    }
    XM_TRY(restrict_choice(t, sampler, vocabulary, err));
    XM_TRY(xm_sampler_next(sampler, scratch, row, id, err));
    return note_probabilities(t, row, vocabulary, *id, err);
}

static enum xm_status
show(struct xm_text *t, int32_t id, struct xm_error *err)
{
    if (t->has_text)
        XM_TRY(xm_text_stream_push(&t->stream, id, err));
    return pass_on(t, id, err);
}

/* Takes a forced token; after the last one, passes on the echoed prompt. */
static enum xm_status
take_forced(struct xm_text *t, int32_t id, struct xm_error *err)
{
    static const struct xm_strbuf nothing;
    if (!xm_token_list_add(&t->tokens, id) || !xm_token_list_add(&t->out->ids, id))
        return xm_no_memory(err, "the tokens");
    if (is_forced(t))
        tell(t, id, XM_ANSWER_NOTHING, &nothing);
    else
        XM_TRY(echo(t, err));
    if (!t->goes_on)
        finish(t, XM_FINISH_CANCELLED);
    else if (t->out->ids.n == t->most)
        finish_by_length(t);
    return XM_OK;
}

enum xm_status
xm_text_take(struct xm_text *t, int32_t id, struct xm_error *err)
{
    if (is_forced(t))
        return take_forced(t, id, err);
    if (is_end(t, id)) {
        finish(t, XM_FINISH_STOP);
        return t->has_text && t->from.asked->keep_end ? show(t, id, err) : XM_OK;
    }
    if (!xm_token_list_add(&t->tokens, id) || !xm_token_list_add(&t->out->ids, id))
        return xm_no_memory(err, "the tokens");
    if (t->constraint)
        XM_TRY(xm_text_grammar_take(t, id, err));
    XM_TRY(show(t, id, err));
    bool is_matched = false;
    if (t->constraint)
        XM_TRY(xm_text_grammar_is_over(t, &is_matched, err));
    t->out->stop = t->stream.stop;
    if (t->stream.stopped || is_matched)
        finish(t, XM_FINISH_STOP);
    else if (!t->goes_on)
        finish(t, XM_FINISH_CANCELLED);
    else if (t->out->ids.n == t->most)
        finish_by_length(t);
    else if (*sampler_of(t) && !xm_dry_run())
        return xm_sampler_accept(*sampler_of(t), &id, 1, err);
    return XM_OK;
}

enum xm_status
xm_text_end(struct xm_text *t, struct xm_error *err)
{
    if (!t->has_text)
        return XM_OK;
    t->answer.is_cut = !t->is_over || t->out->finish == XM_FINISH_LENGTH ||
                       t->out->finish == XM_FINISH_CONTEXT;
    XM_TRY(xm_text_stream_finish(&t->stream, err));
    return pass_on(t, -1, err);
}

/* ---- devices that choose ------------------------------------------------------------------- */

/* Whether the device could choose the token after `length` tokens. It can bar the ids that the
 * package suppresses for all tokens, but not ids that are barred for some tokens only. */
static bool
may_be_on_device(const struct xm_text *t, uint64_t length,
                 struct xm_end_ids barred[XM_BARRED_LISTS])
{
    const struct xm_generation *asked = t->from.asked;
    xm_generation_barred(t->from.package, asked, length, barred);
    return asked->guesses == 0 && !asked->grammar && asked->n_forced == 0 &&
           !asked->wants_log_probs && asked->n_likeliest == 0 && barred[1].n == 0;
}

bool
xm_text_on_device(const struct xm_text *t, struct xm_token_choice *how,
                  struct xm_seen_tokens *seen)
{
    struct xm_end_ids barred[XM_BARRED_LISTS];
    const struct xm_sampler *s = t->from.sampler ? *t->from.sampler : t->own_sampler;
    if (!may_be_on_device(t, t->out->ids.n, barred) ||
        !xm_sampler_on_device(s, how, seen))
        return false;
    seen->barred = barred[0].ids;
    seen->n_barred = barred[0].n;
    how->adjusts |= barred[0].n > 0;
    return true;
}

bool
xm_text_will_be_on_device(const struct xm_text *t, uint64_t vocabulary,
                          struct xm_token_choice *how)
{
    struct xm_end_ids barred[XM_BARRED_LISTS];
    if (vocabulary > INT32_MAX || !may_be_on_device(t, t->most, barred) ||
        !xm_sampling_on_device(t->from.sampling, (size_t)vocabulary, how))
        return false;
    how->adjusts |= barred[0].n > 0;
    return true;
}

void
xm_text_chosen_on_device(struct xm_text *t)
{
    xm_sampler_skip(*sampler_of(t));
}

/* ---- beam search --------------------------------------------------------------------------- */

static bool
copy_result(const struct xm_generation_result *from, struct xm_generation_result *out)
{
    const struct xm_log_probs *p = &from->log_probs;
    const struct xm_likely_tokens *l = &from->likeliest;
    xm_strbuf_add_n(&out->text, xm_strbuf_text(&from->text), from->text.n);
    if (p->n)
        out->log_probs.values =
            xm_grow(NULL, &out->log_probs.capacity, p->n, sizeof(*p->values));
    if (l->n)
        out->likeliest.values =
            xm_grow(NULL, &out->likeliest.capacity, l->n, sizeof(*l->values));
    if (!xm_token_list_add_n(&out->ids, from->ids.ids, from->ids.n) ||
        !xm_strbuf_ok(&out->text) || (p->n && !out->log_probs.values) ||
        (l->n && !out->likeliest.values))
        return false;
    if (p->n)
        memcpy(out->log_probs.values, p->values, p->n * sizeof(*p->values));
    if (l->n)
        memcpy(out->likeliest.values, l->values, l->n * sizeof(*l->values));
    out->log_probs.n = p->n;
    out->likeliest.n = l->n;
    out->finish = from->finish;
    out->stop = from->stop;
    return true;
}

enum xm_status
xm_text_fork(const struct xm_text *t, struct xm_text *copy,
             struct xm_generation_result *out, struct xm_error *err)
{
    assert(!t->from.asked->is_answer && !t->own_sampler && !t->from.sampler);
    *copy = (struct xm_text){.from = t->from,
                             .out = out,
                             .n_prompt = t->n_prompt,
                             .most = t->most,
                             .is_over = t->is_over,
                             .goes_on = t->goes_on};
    if (!copy_result(t->out, out) ||
        !xm_token_list_add_n(&copy->tokens, t->tokens.ids, t->tokens.n))
        return xm_no_memory(err, "a text");
    if (t->has_text)
        XM_TRY(xm_text_stream_copy(&t->stream, &copy->stream, err));
    copy->has_text = t->has_text;
    return t->constraint ? xm_constraint_fork(t->constraint, &copy->constraint, err)
                         : XM_OK;
}

static void
keep_allowed(const struct xm_token_bits *bits, float *row, uint64_t vocabulary)
{
    for (uint64_t i = 0; i < vocabulary; i++)
        if (i / 64 >= bits->n || !(bits->words[i / 64] >> i % 64 & 1))
            row[i] = -INFINITY;
}

enum xm_status
xm_text_weigh(struct xm_text *t, const float *row, uint64_t vocabulary, float *out,
              struct xm_error *err)
{
    struct xm_text_limits limits;
    const double sum = xm_log_sum_exp(row, vocabulary);
    XM_TRY(find_limits(t, vocabulary, &limits, err));
    for (uint64_t i = 0; i < vocabulary; i++)
        out[i] = (float)((double)row[i] - sum);
    if (limits.allowed.words)
        keep_allowed(&limits.allowed, out, vocabulary);
    for (size_t i = 0; i < XM_LIMIT_LISTS; i++)
        xm_bar_tokens(limits.barred[i].ids, limits.barred[i].n, out, (size_t)vocabulary);
    return XM_OK;
}

enum xm_status
xm_text_take_from(struct xm_text *t, const float *row, uint64_t vocabulary, int32_t id,
                  struct xm_error *err)
{
    if (!xm_dry_run())
        XM_TRY(note_probabilities(t, row, vocabulary, id, err));
    else if (t->from.asked->wants_log_probs)
        XM_TRY(note_log_prob(&t->out->log_probs, 0.0, err));
    return xm_text_take(t, id, err);
}
