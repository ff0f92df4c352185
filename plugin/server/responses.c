/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/responses: the answer to a text or a conversation, as OpenAI's newer API has it. Nothing
 * is stored: each request has its whole conversation. Tools of the server's own there are none.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/server/messages.h"
#include "plugin/server/openai.h"

/* ---- the response ---------------------------------------------------------------------------- */

/* The id of the message in the response. */
static void
add_item_id(const struct xm_completion *c, struct xm_json_out *j, yyjson_mut_val *o,
            const char *key)
{
    struct xm_strbuf id = {0};
    xm_strbuf_printf(&id, "msg_%s", c->id + strlen("resp_"));
    xm_openai_strbuf(j, o, key, &id);
    xm_strbuf_free(&id);
}

static void
add_content(const struct xm_completion_text *t, struct xm_json_out *j,
            yyjson_mut_val *part)
{
    xm_openai_text(j, part, "type", "output_text");
    xm_openai_strbuf(j, part, "text", &t->text);
    xm_json_add_array(j, part, "annotations");
    xm_json_add_array(j, part, "logprobs");
}

static void
add_item(const struct xm_completion_text *t, struct xm_json_out *j, yyjson_mut_val *o)
{
    add_item_id(t->of, j, o, "id");
    xm_openai_text(j, o, "type", "message");
    xm_openai_text(j, o, "role", "assistant");
    xm_openai_text(j, o, "status", t->is_over ? "completed" : "in_progress");
    yyjson_mut_val *list = xm_json_add_array(j, o, "content");
    if (t->is_over)
        add_content(t, j, xm_json_add_object(j, list, NULL));
}

static const char *
status_of(const struct xm_completion_text *t)
{
    return !t->finish                         ? "in_progress"
           : strcmp(t->finish, "length") == 0 ? "incomplete"
                                              : "completed";
}

static void
add_usage(const struct xm_completion *c, struct xm_json_out *j, yyjson_mut_val *o)
{
    const struct xm_usage u = xm_completion_usage(c);
    yyjson_mut_val *usage = xm_json_add_object(j, o, "usage");
    xm_json_add_whole(j, usage, "input_tokens", u.prompt);
    yyjson_mut_val *input = xm_json_add_object(j, usage, "input_tokens_details");
    xm_json_add_whole(j, input, "cached_tokens", u.reused);
    xm_json_add_whole(j, usage, "output_tokens", u.made);
    yyjson_mut_val *output = xm_json_add_object(j, usage, "output_tokens_details");
    xm_json_add_whole(j, output, "reasoning_tokens", 0);
    xm_json_add_whole(j, usage, "total_tokens", u.prompt + u.made);
}

static void
add_response(const struct xm_completion *c, struct xm_json_out *j, yyjson_mut_val *o)
{
    const struct xm_completion_text *t = &c->texts[0];
    xm_openai_text(j, o, "id", c->id);
    xm_openai_text(j, o, "object", "response");
    xm_json_add_whole(j, o, "created_at", (uint64_t)c->created);
    xm_openai_text(j, o, "model", c->model->name);
    xm_openai_text(j, o, "status", status_of(t));
    xm_json_add_null(j, o, "error");
    if (t->finish && strcmp(t->finish, "length") == 0)
        xm_openai_text(j, xm_json_add_object(j, o, "incomplete_details"), "reason",
                       "max_output_tokens");
    else
        xm_json_add_null(j, o, "incomplete_details");
    yyjson_mut_val *list = xm_json_add_array(j, o, "output");
    if (t->is_over)
        add_item(t, j, xm_json_add_object(j, list, NULL));
    xm_json_add_bool(j, o, "parallel_tool_calls", false);
    xm_openai_text(j, o, "tool_choice", "none");
    xm_json_add_array(j, o, "tools");
    if (t->is_over)
        add_usage(c, j, o);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void
begin_event(struct xm_completion *c, struct xm_json_out *j, const char *type)
{
    xm_json_begin(j);
    xm_openai_text(j, NULL, "type", type);
    xm_json_add_whole(j, NULL, "sequence_number", (uint64_t)c->next++);
}

static void
tell_response(struct xm_completion *c, const char *type)
{
    struct xm_json_out j;
    begin_event(c, &j, type);
    add_response(c, &j, xm_json_add_object(&j, NULL, "response"));
    xm_completion_event(c, type, &j);
}

static void
tell_item(struct xm_completion_text *t, const char *type)
{
    struct xm_json_out j;
    begin_event(t->of, &j, type);
    xm_json_add_whole(&j, NULL, "output_index", 0);
    add_item(t, &j, xm_json_add_object(&j, NULL, "item"));
    xm_completion_event(t->of, type, &j);
}

/* Begins an event of the only part of the only item. */
static void
begin_part_event(struct xm_completion_text *t, struct xm_json_out *j, const char *type)
{
    begin_event(t->of, j, type);
    add_item_id(t->of, j, NULL, "item_id");
    xm_json_add_whole(j, NULL, "output_index", 0);
    xm_json_add_whole(j, NULL, "content_index", 0);
}

static void
tell_content(struct xm_completion_text *t, const char *type)
{
    struct xm_json_out j;
    begin_part_event(t, &j, type);
    add_content(t, &j, xm_json_add_object(&j, NULL, "part"));
    xm_completion_event(t->of, type, &j);
}

static void
tell_begin(struct xm_completion *c)
{
    tell_response(c, "response.created");
    tell_response(c, "response.in_progress");
    tell_item(&c->texts[0], "response.output_item.added");
    tell_content(&c->texts[0], "response.content_part.added");
}

/* Thoughts are not told. */
static void
tell_part(struct xm_completion_text *t, const struct xm_text_part *part)
{
    struct xm_json_out j;
    if (part->part != XM_ANSWER_TEXT)
        return;
    begin_part_event(t, &j, "response.output_text.delta");
    xm_json_add_text(&j, NULL, "delta", part->text, part->n);
    xm_json_add_array(&j, NULL, "logprobs");
    xm_completion_event(t->of, "response.output_text.delta", &j);
}

static void
tell_end(struct xm_completion_text *t)
{
    struct xm_json_out j;
    begin_part_event(t, &j, "response.output_text.done");
    xm_openai_strbuf(&j, NULL, "text", &t->text);
    xm_json_add_array(&j, NULL, "logprobs");
    xm_completion_event(t->of, "response.output_text.done", &j);
    tell_content(t, "response.content_part.done");
    tell_item(t, "response.output_item.done");
}

static void
tell_finish(struct xm_completion *c)
{
    const bool is_cut = strcmp(c->texts[0].finish, "length") == 0;
    tell_response(c, is_cut ? "response.incomplete" : "response.completed");
}

static void
tell_failure(struct xm_completion *c, const struct xm_refusal *why)
{
    struct xm_json_out j;
    begin_event(c, &j, "error");
    xm_openai_text(&j, NULL, "code", why->code ? why->code : "server_error");
    xm_openai_text(&j, NULL, "message", why->text);
    xm_json_add_null(&j, NULL, "param");
    xm_completion_event(c, "error", &j);
}

static void
answer_whole(struct xm_completion *c, struct xm_json_out *j)
{
    add_response(c, j, NULL);
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool
add_input(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item, size_t i,
          struct xm_refusal *r)
{
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    char where[64];
    struct xm_strbuf text = {0};
    size_t role = 0;
    snprintf(where, sizeof(where), "input[%zu]", i);
    while (role < XM_ARRAY_LEN(roles) &&
           !yyjson_equals_str(yyjson_obj_get(item, "role"), roles[role]))
        role++;
    if (role == XM_ARRAY_LEN(roles))
        return xm_refuse(
            r, 400, where, "unsupported_content",
            "'%s' is no message: expected an object with 'role' and 'content'", where);
    const bool good = xm_content_text(yyjson_obj_get(item, "content"), where,
                                      "input_text output_text text", &text, r);
    if (good)
        xm_messages_add(j, list, role == 3 ? "system" : roles[role], &text);
    xm_strbuf_free(&text);
    return good;
}

static bool
add_inputs(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *body,
           struct xm_refusal *r)
{
    yyjson_val *input = yyjson_obj_get(body, "input"), *item;
    struct xm_strbuf text = {0};
    size_t i, n;
    bool good = xm_content_text(yyjson_obj_get(body, "instructions"), "instructions",
                                "text", &text, r);
    if (good && text.n)
        xm_messages_add(j, list, "system", &text);
    xm_strbuf_clear(&text);
    if (good && yyjson_is_str(input)) {
        good = xm_content_text(input, "input", "text", &text, r);
        xm_messages_add(j, list, "user", &text);
    } else if (good && yyjson_arr_size(input) == 0) {
        good = xm_refuse(r, 400, "input", "invalid_type",
                         "'input' takes a string, or a list of messages");
    }
    xm_strbuf_free(&text);
    yyjson_arr_foreach(input, i, n, item)
    {
        good = good && add_input(j, list, item, i, r);
    }
    return good;
}

static bool
add_prompt(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    struct xm_json_out j, variables;
    struct xm_messages m = {NULL, NULL};
    xm_json_begin(&j);
    xm_json_begin(&variables);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "messages");
    bool good = add_inputs(&j, list, body, r) &&
                xm_template_variables(body, &variables, r) &&
                xm_messages_finish(&j, list, &variables, &m, r);
    xm_json_end(&j);
    xm_json_end(&variables);
    const struct xm_prompt prompt = {
        .kind = XM_PROMPT_MESSAGES, .text = m.text, .variables = m.variables};
    good = good && xm_completion_add(c, &prompt, "input", r);
    xm_messages_free(&m);
    return good;
}

static bool
read_wish(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    static const char *const refused[] = {"tools", "previous_response_id", "conversation",
                                          "background", "prompt"};
    yyjson_val *format = yyjson_obj_get(yyjson_obj_get(body, "text"), "format");
    if (!xm_wish_read(&c->wish, body, r) ||
        !xm_wish_count(body, "max_output_tokens", 1, UINT64_MAX, &c->wish.max_tokens, r))
        return false;
    for (size_t i = 0; i < XM_ARRAY_LEN(refused); i++)
        if (!xm_wish_refuses(body, refused[i], r))
            return false;
    return xm_wish_is_one(&c->wish, r) && xm_wish_format(&c->wish, format, "text", r);
}

static const struct xm_dialect responses = {
    .is_chat = true,
    .read_wish = read_wish,
    .add_prompts = add_prompt,
    .prefix = "resp_",
    .begin = tell_begin,
    .part = tell_part,
    .end = tell_end,
    .finish = tell_finish,
    .fail = tell_failure,
    .whole = answer_whole,
};

void
xm_answer_responses(struct xm_exchange *x)
{
    xm_completion_answer(x, &responses);
}
