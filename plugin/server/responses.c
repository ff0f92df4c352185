/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/responses: answers a text or a conversation, in the form of OpenAI's newer API. Nothing
 * is stored: each request has its whole conversation, with earlier tool calls (function_call) and
 * their results (function_call_output). Tools are functions; the server has no tools of its own.
 */
#include <string.h>

#include "plugin/server/messages.h"
#include "plugin/server/openai.h"
#include "plugin/server/tools.h"

/* ---- the response ---------------------------------------------------------------------------- */

/* Items of the output: a message, with index t->message_place - 1 (place 0: no message), and tool
 * calls. t->n_items have begun. */

/* Adds the id of an item: of the message, or of call number i. */
static void
add_id(const struct xm_completion_text *t, const char *prefix, size_t i,
       struct xm_json_out *j, yyjson_mut_val *o, const char *key)
{
    struct xm_strbuf id = {0};
    xm_strbuf_printf(&id, "%s%s", prefix, t->of->id + strlen("resp_"));
    if (i > 0)
        xm_strbuf_printf(&id, "_%zu", i);
    xm_openai_strbuf(j, o, key, &id);
    j->failed |= !xm_strbuf_ok(&id);
    xm_strbuf_free(&id);
}

static void
add_message_id(const struct xm_completion_text *t, struct xm_json_out *j,
               yyjson_mut_val *o, const char *key)
{
    add_id(t, "msg_", 0, j, o, key);
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

static bool
is_cut(const struct xm_completion_text *t)
{
    return t->finish && strcmp(t->finish, "length") == 0;
}

/* Whether the message was cut off. Only the last item can be. */
static bool
message_is_cut(const struct xm_completion_text *t)
{
    const size_t place = t->message_place ? (size_t)t->message_place - 1 : 0;
    return is_cut(t) && place == t->result.calls.n;
}

static void
add_message(const struct xm_completion_text *t, struct xm_json_out *j, yyjson_mut_val *o)
{
    add_message_id(t, j, o, "id");
    xm_openai_text(j, o, "type", "message");
    xm_openai_text(j, o, "role", "assistant");
    xm_openai_text(j, o, "status",
                   !t->is_over         ? "in_progress"
                   : message_is_cut(t) ? "incomplete"
                                       : "completed");
    yyjson_mut_val *list = xm_json_add_array(j, o, "content");
    if (t->is_over)
        add_content(t, j, xm_json_add_object(j, list, NULL));
}

/* Adds call number i; is_whole false: without its arguments, because it has just begun. */
static void
add_call(const struct xm_completion_text *t, const struct xm_tool_call *call, size_t i,
         bool is_whole, struct xm_json_out *j, yyjson_mut_val *o)
{
    struct xm_strbuf id = {0};
    add_id(t, "fc_", i + 1, j, o, "id");
    xm_openai_text(j, o, "type", "function_call");
    xm_openai_text(j, o, "status",
                   !is_whole      ? "in_progress"
                   : call->is_cut ? "incomplete"
                                  : "completed");
    xm_completion_call_id(t, i, &id);
    xm_openai_strbuf(j, o, "call_id", &id);
    xm_openai_text(j, o, "name", call->name);
    xm_openai_text(j, o, "arguments", is_whole ? call->arguments : "");
    j->failed |= !xm_strbuf_ok(&id);
    xm_strbuf_free(&id);
}

static void
add_output(const struct xm_completion_text *t, struct xm_json_out *j,
           yyjson_mut_val *list)
{
    const struct xm_tool_calls *calls = &t->result.calls;
    const bool has_message = t->message_place || t->text.n || !calls->n;
    const size_t message = t->message_place ? (size_t)t->message_place - 1 : 0;
    for (size_t i = 0, k = 0; i < calls->n + has_message; i++) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        if (has_message && i == message) {
            add_message(t, j, o);
        } else {
            add_call(t, &calls->list[k], k, true, j, o);
            k++;
        }
    }
}

static const char *
status_of(const struct xm_completion_text *t)
{
    return !t->finish ? "in_progress" : is_cut(t) ? "incomplete" : "completed";
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

/* Adds the tools as the request has them, because clients read them back. */
static void
add_tools(const struct xm_completion *c, struct xm_json_out *j, yyjson_mut_val *o)
{
    yyjson_val *body = yyjson_doc_get_root(c->body);
    yyjson_val *choice = yyjson_obj_get(body, "tool_choice");
    yyjson_val *tools = yyjson_obj_get(body, "tools");
    xm_json_add_bool(j, o, "parallel_tool_calls", !c->wish.tools.one);
    if (choice && !yyjson_is_null(choice))
        xm_json_add_value(j, o, "tool_choice", yyjson_val_mut_copy(j->doc, choice));
    else
        xm_openai_text(j, o, "tool_choice", "auto");
    if (yyjson_is_arr(tools))
        xm_json_add_value(j, o, "tools", yyjson_val_mut_copy(j->doc, tools));
    else
        xm_json_add_array(j, o, "tools");
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
    if (is_cut(t))
        xm_openai_text(j, xm_json_add_object(j, o, "incomplete_details"), "reason",
                       "max_output_tokens");
    else
        xm_json_add_null(j, o, "incomplete_details");
    yyjson_mut_val *list = xm_json_add_array(j, o, "output");
    if (t->is_over)
        add_output(t, j, list);
    add_tools(c, j, o);
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
tell_message(struct xm_completion_text *t, const char *type)
{
    struct xm_json_out j;
    begin_event(t->of, &j, type);
    xm_json_add_whole(&j, NULL, "output_index", (uint64_t)t->message_place - 1);
    add_message(t, &j, xm_json_add_object(&j, NULL, "item"));
    xm_completion_event(t->of, type, &j);
}

/* Begins an event for the message's only part. */
static void
begin_part_event(struct xm_completion_text *t, struct xm_json_out *j, const char *type)
{
    begin_event(t->of, j, type);
    add_message_id(t, j, NULL, "item_id");
    xm_json_add_whole(j, NULL, "output_index", (uint64_t)t->message_place - 1);
    xm_json_add_whole(j, NULL, "content_index", 0);
}

static void
tell_content(struct xm_completion_text *t, const char *type, bool is_empty)
{
    struct xm_json_out j;
    begin_part_event(t, &j, type);
    yyjson_mut_val *part = xm_json_add_object(&j, NULL, "part");
    if (is_empty) {
        static const struct xm_completion_text nothing;
        add_content(&nothing, &j, part);
    } else {
        add_content(t, &j, part);
    }
    xm_completion_event(t->of, type, &j);
}

static void
tell_begin(struct xm_completion *c)
{
    tell_response(c, "response.created");
    tell_response(c, "response.in_progress");
}

static void
begin_message(struct xm_completion_text *t)
{
    if (t->message_place)
        return;
    t->message_place = ++t->n_items;
    tell_message(t, "response.output_item.added");
    tell_content(t, "response.content_part.added", true);
}

/* ---- a stream: calls ---- */

static void
tell_call_item(struct xm_completion_text *t, const struct xm_text_part *part,
               const char *type, bool is_whole)
{
    struct xm_json_out j;
    begin_event(t->of, &j, type);
    xm_json_add_whole(&j, NULL, "output_index", (uint64_t)t->n_items - 1);
    add_call(t, part->call, part->so_far->calls.n - 1, is_whole, &j,
             xm_json_add_object(&j, NULL, "item"));
    xm_completion_event(t->of, type, &j);
}

/* Writes a call's complete arguments as one event, under `key` "delta" or "arguments". */
static void
tell_arguments(struct xm_completion_text *t, const struct xm_text_part *part,
               const char *type, const char *key)
{
    struct xm_json_out j;
    begin_event(t->of, &j, type);
    add_id(t, "fc_", part->so_far->calls.n, &j, NULL, "item_id");
    xm_json_add_whole(&j, NULL, "output_index", (uint64_t)t->n_items - 1);
    xm_openai_text(&j, NULL, key, part->call->arguments);
    if (strcmp(key, "arguments") == 0)
        xm_openai_text(&j, NULL, "name", part->call->name);
    xm_completion_event(t->of, type, &j);
}

static void
tell_call(struct xm_completion_text *t, const struct xm_text_part *part)
{
    t->n_items++;
    tell_call_item(t, part, "response.output_item.added", false);
    tell_arguments(t, part, "response.function_call_arguments.delta", "delta");
    tell_arguments(t, part, "response.function_call_arguments.done", "arguments");
    tell_call_item(t, part, "response.output_item.done", true);
}

/* ---- a stream: text ---- */

/* Writes a part of the message; thoughts are not written. */
static void
tell_part(struct xm_completion_text *t, const struct xm_text_part *part)
{
    struct xm_json_out j;
    if (part->call)
        tell_call(t, part);
    if (part->part != XM_ANSWER_TEXT)
        return;
    begin_message(t);
    begin_part_event(t, &j, "response.output_text.delta");
    xm_json_add_text(&j, NULL, "delta", part->text, part->n);
    xm_json_add_array(&j, NULL, "logprobs");
    xm_completion_event(t->of, "response.output_text.delta", &j);
}

/* Ends a text. A response must have at least one item. */
static void
tell_end(struct xm_completion_text *t)
{
    struct xm_json_out j;
    if (!t->n_items)
        begin_message(t);
    if (!t->message_place)
        return;
    begin_part_event(t, &j, "response.output_text.done");
    xm_openai_strbuf(&j, NULL, "text", &t->text);
    xm_json_add_array(&j, NULL, "logprobs");
    xm_completion_event(t->of, "response.output_text.done", &j);
    tell_content(t, "response.content_part.done", false);
    tell_message(t, "response.output_item.done");
}

static void
tell_finish(struct xm_completion *c)
{
    tell_response(c, is_cut(&c->texts[0]) ? "response.incomplete" : "response.completed");
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
add_message_input(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item,
                  const char *where, struct xm_refusal *r)
{
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    struct xm_strbuf text = {0};
    yyjson_val *said = yyjson_obj_get(item, "role");
    size_t role = 0;
    while (role < XM_ARRAY_LEN(roles) && !yyjson_equals_str(said, roles[role]))
        role++;
    if (role == XM_ARRAY_LEN(roles))
        return xm_refuse_value(r, xm_place("%s.role", where).text, said,
                               "user, assistant, system or developer");
    const bool good = xm_content_text(yyjson_obj_get(item, "content"),
                                      xm_place("%s.content", where).text,
                                      "input_text output_text text refusal", &text, r);
    if (good)
        xm_messages_add(j, list, role == 3 ? "system" : roles[role], &text);
    xm_strbuf_free(&text);
    return good;
}

/* Adds an earlier tool call to the assistant's message before it, or to a new one. */
static bool
add_call_input(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item,
               const char *where, struct xm_refusal *r)
{
    static const struct xm_strbuf nothing;
    static const struct xm_call_members as = {NULL, "call_id", "arguments"};
    yyjson_mut_val *message = yyjson_mut_arr_get_last(list);
    if (!yyjson_mut_equals_str(yyjson_mut_obj_get(message, "role"), "assistant"))
        message = xm_messages_add(j, list, "assistant", &nothing);
    return xm_messages_add_call(j, message, &as, item, where, r);
}

static bool
add_result_input(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item,
                 const char *where, struct xm_refusal *r)
{
    struct xm_strbuf text = {0};
    yyjson_val *id;
    const bool good =
        xm_wish_text(item, xm_place("%s.call_id", where).text, &id, r) &&
        xm_content_text(yyjson_obj_get(item, "output"), xm_place("%s.output", where).text,
                        "input_text output_text text", &text, r);
    if (good) {
        yyjson_mut_val *o = xm_messages_add(j, list, "tool", &text);
        if (id)
            xm_json_add_text(j, o, "tool_call_id", yyjson_get_str(id),
                             yyjson_get_len(id));
    }
    xm_strbuf_free(&text);
    return good;
}

/* Skips earlier reasoning, which is not passed to the model again. */
static bool
skip_input(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item,
           const char *where, struct xm_refusal *r)
{
    (void)j;
    (void)list;
    (void)item;
    (void)where;
    (void)r;
    return true;
}

static bool
add_input(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item, size_t i,
          struct xm_refusal *r)
{
    static const struct {
        const char *type;
        bool (*add)(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *item,
                    const char *where, struct xm_refusal *r);
    } types[] = {{"message", add_message_input},
                 {"function_call", add_call_input},
                 {"function_call_output", add_result_input},
                 {"reasoning", skip_input}};
    yyjson_val *type = yyjson_obj_get(item, "type");
    const struct xm_shown where = xm_place("input[%zu]", i);
    if (!yyjson_is_obj(item))
        return xm_refuse_value(r, where.text, item, "a message, an object");
    for (size_t k = 0; k < XM_ARRAY_LEN(types); k++)
        if (yyjson_equals_str(type, types[k].type) || (k == 0 && !type))
            return types[k].add(j, list, item, where.text, r);
    return xm_refuse_value(r, xm_place("%s.type", where.text).text, type,
                           "message, function_call, function_call_output or reasoning");
}

static bool
add_inputs(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *body,
           struct xm_refusal *r)
{
    yyjson_val *input = yyjson_obj_get(body, "input"), *item, *instructions;
    struct xm_strbuf text = {0};
    size_t i, n;
    bool good = xm_wish_text(body, "instructions", &instructions, r);
    if (good)
        xm_strbuf_add_n(&text, yyjson_get_str(instructions),
                        yyjson_get_len(instructions));
    if (text.n)
        xm_messages_add(j, list, "system", &text);
    xm_strbuf_clear(&text);
    if (good && yyjson_is_str(input)) {
        good = xm_content_text(input, "input", "text", &text, r);
        xm_messages_add(j, list, "user", &text);
    } else if (good && yyjson_arr_size(input) == 0) {
        good = xm_refuse_value(r, "input", input, "a string, or a list of messages");
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
    struct xm_messages m = {NULL, NULL, {0}};
    xm_json_begin(&j);
    xm_json_begin(&variables);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "messages");
    xm_tools_add(&c->wish, &variables);
    bool good = add_inputs(&j, list, body, r) &&
                xm_template_variables(body, &variables, r) &&
                xm_messages_finish(&j, list, &variables, &m, r);
    xm_json_end(&j);
    xm_json_end(&variables);
    const struct xm_prompt prompt = xm_messages_prompt(&m);
    good = good && xm_completion_add(c, &prompt, "input", r);
    xm_messages_free(&m);
    return good;
}

static bool
read_wish(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    static const char *const refused[] = {"previous_response_id", "conversation",
                                          "background", "prompt"};
    yyjson_val *text = yyjson_obj_get(body, "text");
    if (text && !yyjson_is_null(text) && !yyjson_is_obj(text))
        return xm_refuse_value(r, "text", text, "an object");
    if (!xm_wish_read(&c->wish, body, r) ||
        !xm_wish_count(body, "max_output_tokens", 1, UINT64_MAX, &c->wish.max_tokens, r))
        return false;
    for (size_t i = 0; i < XM_ARRAY_LEN(refused); i++)
        if (!xm_wish_refuses(body, refused[i], r))
            return false;
    return xm_wish_is_one(&c->wish, r) &&
           xm_wish_format(&c->wish, yyjson_obj_get(text, "format"), "text.format", r) &&
           xm_tools_read(&c->wish, XM_TOOLS_RESPONSES, body, r) &&
           xm_tools_grammar(&c->wish, r);
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
