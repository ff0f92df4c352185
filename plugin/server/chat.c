/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/chat/completions: answers a conversation. The model's reasoning before the answer is
 * returned as "reasoning_content".
 */
#include "plugin/server/messages.h"
#include "plugin/server/openai.h"
#include "plugin/server/tools.h"

static const char whole_object[] = "chat.completion";
static const char chunk_object[] = "chat.completion.chunk";

/* ---- probabilities --------------------------------------------------------------------------- */

static void
add_token(const struct xm_completion_text *t, const struct xm_generation_result *r,
          size_t i, struct xm_json_out *j, yyjson_mut_val *list)
{
    const struct xm_completion *c = t->of;
    const size_t most = (size_t)c->wish.likeliest;
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_openai_token(c, j, o, r->ids.ids[i], (double)r->log_probs.values[i]);
    yyjson_mut_val *top = xm_json_add_array(j, o, "top_logprobs");
    for (size_t k = i * most; k < (i + 1) * most && k < r->likeliest.n; k++) {
        const struct xm_likely_token *likely = &r->likeliest.values[k];
        if (likely->id >= 0)
            xm_openai_token(c, j, xm_json_add_object(j, top, NULL), likely->id,
                            (double)likely->log_prob);
    }
}

/* Adds the probabilities that have not been sent; null if none are wanted. */
static void
add_log_probs(struct xm_completion_text *t, const struct xm_generation_result *r,
              struct xm_json_out *j, yyjson_mut_val *choice)
{
    if (!t->of->wish.wants_log_probs) {
        xm_json_add_null(j, choice, "logprobs");
        return;
    }
    yyjson_mut_val *o = xm_json_add_object(j, choice, "logprobs");
    yyjson_mut_val *list = xm_json_add_array(j, o, "content");
    for (size_t i = 0; i < t->told.n; i++)
        if ((size_t)t->told.ids[i] < r->log_probs.n)
            add_token(t, r, (size_t)t->told.ids[i], j, list);
    xm_json_add_null(j, o, "refusal");
    xm_token_list_clear(&t->told);
}

/* ---- calls of tools -------------------------------------------------------------------------- */

static void
add_call(const struct xm_completion_text *t, const struct xm_tool_call *call, size_t i,
         bool with_index, struct xm_json_out *j, yyjson_mut_val *list)
{
    struct xm_strbuf id = {0};
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_completion_call_id(t, i, &id);
    if (with_index)
        xm_json_add_whole(j, o, "index", i);
    xm_openai_strbuf(j, o, "id", &id);
    xm_openai_text(j, o, "type", "function");
    yyjson_mut_val *function = xm_json_add_object(j, o, "function");
    xm_openai_text(j, function, "name", call->name);
    xm_openai_text(j, function, "arguments", call->arguments);
    j->failed |= !xm_strbuf_ok(&id);
    xm_strbuf_free(&id);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void
tell_begin(struct xm_completion *c)
{
    for (size_t i = 0; i < c->n_texts; i++) {
        struct xm_json_out j;
        yyjson_mut_val *choice = xm_openai_chunk(&c->texts[i], &j, chunk_object);
        yyjson_mut_val *delta = xm_json_add_object(&j, choice, "delta");
        xm_openai_text(&j, delta, "role", "assistant");
        xm_openai_text(&j, delta, "content", "");
        xm_json_add_null(&j, choice, "logprobs");
        xm_json_add_null(&j, choice, "finish_reason");
        xm_completion_event(c, NULL, &j);
    }
}

static void
tell_part(struct xm_completion_text *t, const struct xm_text_part *part)
{
    struct xm_json_out j;
    const char *key = part->part == XM_ANSWER_THOUGHT ? "reasoning_content" : "content";
    yyjson_mut_val *choice = xm_openai_chunk(t, &j, chunk_object);
    yyjson_mut_val *delta = xm_json_add_object(&j, choice, "delta");
    if (part->call)
        add_call(t, part->call, part->so_far->calls.n - 1, true, &j,
                 xm_json_add_array(&j, delta, "tool_calls"));
    else
        xm_json_add_text(&j, delta, key, part->text, part->n);
    add_log_probs(t, part->so_far, &j, choice);
    xm_json_add_null(&j, choice, "finish_reason");
    xm_completion_event(t->of, NULL, &j);
}

static void
tell_end(struct xm_completion_text *t)
{
    struct xm_json_out j;
    yyjson_mut_val *choice = xm_openai_chunk(t, &j, chunk_object);
    xm_json_add_object(&j, choice, "delta");
    xm_json_add_null(&j, choice, "logprobs");
    xm_openai_text(&j, choice, "finish_reason", t->finish);
    xm_completion_event(t->of, NULL, &j);
}

static void
tell_finish(struct xm_completion *c)
{
    xm_openai_finish(c, chunk_object);
}

/* ---- the answer in one piece ----------------------------------------------------------------- */

/* Adds the message. A message that only calls tools has content null. */
static void
add_message(const struct xm_completion_text *t, struct xm_json_out *j,
            yyjson_mut_val *message)
{
    const struct xm_tool_calls *calls = &t->result.calls;
    xm_openai_text(j, message, "role", "assistant");
    if (t->text.n || !calls->n)
        xm_openai_strbuf(j, message, "content", &t->text);
    else
        xm_json_add_null(j, message, "content");
    xm_json_add_null(j, message, "refusal");
    if (t->thought.n)
        xm_openai_strbuf(j, message, "reasoning_content", &t->thought);
    yyjson_mut_val *list = calls->n ? xm_json_add_array(j, message, "tool_calls") : NULL;
    for (size_t i = 0; i < calls->n; i++)
        add_call(t, &calls->list[i], i, false, j, list);
}

static void
answer_whole(struct xm_completion *c, struct xm_json_out *j)
{
    xm_openai_head(c, j, whole_object);
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "choices");
    for (size_t i = 0; i < c->n_texts; i++) {
        struct xm_completion_text *t = &c->texts[i];
        yyjson_mut_val *choice = xm_json_add_object(j, list, NULL);
        xm_json_add_whole(j, choice, "index", i);
        add_message(t, j, xm_json_add_object(j, choice, "message"));
        add_log_probs(t, &t->result, j, choice);
        xm_openai_text(j, choice, "finish_reason", t->finish);
    }
    xm_openai_usage(c, j);
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool
add_prompt(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    struct xm_messages m;
    if (!xm_messages_read(body, &c->wish, &m, r))
        return false;
    const struct xm_prompt prompt = xm_messages_prompt(&m);
    const bool good = xm_completion_add(c, &prompt, "messages", r);
    xm_messages_free(&m);
    return good;
}

static bool
read_wish(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    struct xm_wish *w = &c->wish;
    if (!xm_wish_read(w, body, r) || !xm_tools_read(w, XM_TOOLS_CHAT, body, r) ||
        !xm_tools_grammar(w, r) ||
        !xm_wish_flag(body, "logprobs", &w->wants_log_probs, r) ||
        !xm_wish_count(body, "top_logprobs", 0, XM_MOST_LIKELIEST, &w->likeliest, r))
        return false;
    return !w->likeliest || w->wants_log_probs ||
           xm_refuse(r, 400, "top_logprobs", "invalid_value",
                     "'top_logprobs' needs 'logprobs': true");
}

static const struct xm_dialect chat = {
    .is_chat = true,
    .read_wish = read_wish,
    .add_prompts = add_prompt,
    .prefix = "chatcmpl-",
    .begin = tell_begin,
    .part = tell_part,
    .end = tell_end,
    .finish = tell_finish,
    .fail = xm_openai_fail,
    .whole = answer_whole,
};

void
xm_answer_chat(struct xm_exchange *x)
{
    xm_completion_answer(x, &chat);
}
