/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/completions: continues prompts. A prompt is a text, in which names of control tokens
 * become these tokens (as in xemoe generate -p), or a list of token ids; or a list of prompts.
 */
#include "plugin/server/openai.h"

#include <math.h>

static const char object[] = "text_completion";

/* ---- probabilities --------------------------------------------------------------------------- */

static double
bounded(float log_prob)
{
    return log_prob > -9999.0f ? (double)log_prob : -9999.0;
}

/* Adds the likeliest tokens as an object: token text to log-probability. If several tokens have the
 * same text, the likelier one is kept. */
static void
add_likeliest(const struct xm_completion *c, const struct xm_generation_result *r,
              size_t i, struct xm_json_out *j, yyjson_mut_val *list)
{
    const size_t most = (size_t)c->wish.likeliest;
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    for (size_t k = i * most; k < (i + 1) * most && k < r->likeliest.n; k++) {
        struct xm_strbuf text = {0};
        if (r->likeliest.values[k].id < 0)
            continue;
        j->failed |= !xm_completion_token(c, r->likeliest.values[k].id, &text);
        if (!yyjson_mut_obj_getn(o, xm_strbuf_text(&text), text.n))
            xm_json_add_real(j, o, xm_strbuf_text(&text),
                             bounded(r->likeliest.values[k].log_prob));
        xm_strbuf_free(&text);
    }
}

/* Whether the prompt's tokens are reported, too. */
static bool
has_prompt(const struct xm_completion *c)
{
    return c->echo && c->wish.wants_log_probs;
}

/* The lists in an answer's "logprobs". */
struct lists {
    yyjson_mut_val *tokens, *log_probs, *likeliest, *offsets;
};

/* Adds a token's text and its offset in the text. Special tokens have the offset of the next text,
 * because no text has them. `told_bytes` is the sum of the previous tokens' bytes. */
static void
add_token_text(struct xm_completion_text *t, int32_t id, const struct lists *l,
               struct xm_json_out *j)
{
    const struct xm_completion *c = t->of;
    const struct xm_package *p = c->model->package;
    struct xm_strbuf text = {0};
    j->failed |= !xm_completion_token(c, id, &text);
    xm_openai_strbuf(j, l->tokens, NULL, &text);
    xm_json_add_whole(j, l->offsets, NULL,
                      (has_prompt(c) ? 0 : t->echoed) + t->told_bytes);
    if (!p || !p->tokenizer || !xm_tokenizer_is_special(p->tokenizer, id))
        t->told_bytes += text.n;
    xm_strbuf_free(&text);
}

/* Adds the probabilities of the tokens that have not been sent. The prompt's first token has
 * none. */
static void
add_log_probs(struct xm_completion_text *t, const struct xm_generation_result *r,
              struct xm_json_out *j, yyjson_mut_val *choice)
{
    const struct xm_completion *c = t->of;
    if (!c->wish.wants_log_probs) {
        xm_json_add_null(j, choice, "logprobs");
        return;
    }
    yyjson_mut_val *o = xm_json_add_object(j, choice, "logprobs");
    const struct lists l = {
        xm_json_add_array(j, o, "tokens"), xm_json_add_array(j, o, "token_logprobs"),
        xm_json_add_array(j, o, "top_logprobs"), xm_json_add_array(j, o, "text_offset")};
    if (has_prompt(c) && !t->has_told_first) {
        t->has_told_first = true;
        add_token_text(t, t->prompt->ids[0], &l, j);
        xm_json_add_null(j, l.log_probs, NULL);
        xm_json_add_null(j, l.likeliest, NULL);
    }
    for (size_t n = 0; n < t->told.n; n++) {
        const size_t i = (size_t)t->told.ids[n];
        if (i >= r->log_probs.n)
            continue;
        add_token_text(t, r->ids.ids[i], &l, j);
        xm_json_add_real(j, l.log_probs, NULL, bounded(r->log_probs.values[i]));
        add_likeliest(c, r, i, j, l.likeliest);
    }
    xm_token_list_clear(&t->told);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void
tell_part(struct xm_completion_text *t, const struct xm_text_part *part)
{
    struct xm_json_out j;
    yyjson_mut_val *choice = xm_openai_chunk(t, &j, object);
    xm_json_add_text(&j, choice, "text", part->text, part->n);
    add_log_probs(t, part->so_far, &j, choice);
    xm_json_add_null(&j, choice, "finish_reason");
    xm_completion_event(t->of, NULL, &j);
}

static void
tell_end(struct xm_completion_text *t)
{
    struct xm_json_out j;
    yyjson_mut_val *choice = xm_openai_chunk(t, &j, object);
    xm_openai_text(&j, choice, "text", "");
    xm_json_add_null(&j, choice, "logprobs");
    xm_openai_text(&j, choice, "finish_reason", t->finish);
    xm_completion_event(t->of, NULL, &j);
}

static void
tell_finish(struct xm_completion *c)
{
    xm_openai_finish(c, object);
}

static void
answer_whole(struct xm_completion *c, struct xm_json_out *j)
{
    xm_openai_head(c, j, object);
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "choices");
    for (size_t i = 0; i < c->n_texts; i++) {
        struct xm_completion_text *t = &c->texts[i];
        yyjson_mut_val *choice = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, choice, "index", i);
        xm_openai_strbuf(j, choice, "text", &t->text);
        add_log_probs(t, &t->result, j, choice);
        xm_openai_text(j, choice, "finish_reason", t->finish);
    }
    xm_openai_usage(c, j);
}

/* ---- prompts --------------------------------------------------------------------------------- */

static bool
add_prompt(void *ctx, const struct xm_prompt *prompt, const char *where,
           struct xm_refusal *r)
{
    (void)where;
    return xm_completion_add(ctx, prompt, "prompt", r);
}

static bool
add_prompts(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    const struct xm_openai_prompts prompts = {"prompt", "prompts",  XM_MOST_TEXTS,
                                              c->model, add_prompt, c};
    return xm_openai_read_prompts(&prompts, body, r);
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool
read_wish(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    enum { USUAL_TOKENS = 16 }; /* default of OpenAI's API */
    struct xm_wish *w = &c->wish;
    yyjson_val *log_probs = yyjson_obj_get(body, "logprobs");
    w->max_tokens = USUAL_TOKENS;
    w->may_be_empty = true;
    w->wants_log_probs = yyjson_is_uint(log_probs);
    return xm_wish_read(w, body, r) && xm_wish_refuses(body, "suffix", r) &&
           xm_wish_flag(body, "echo", &c->echo, r) &&
           xm_wish_count(body, "logprobs", 0, XM_MOST_LIKELIEST, &w->likeliest, r);
}

static const struct xm_dialect completions = {
    .read_wish = read_wish,
    .add_prompts = add_prompts,
    .prefix = "cmpl-",
    .part = tell_part,
    .end = tell_end,
    .finish = tell_finish,
    .fail = xm_openai_fail,
    .whole = answer_whole,
};

void
xm_answer_completions(struct xm_exchange *x)
{
    xm_completion_answer(x, &completions);
}
