/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/messages: answers a conversation, in the form of Anthropic's API. Its content blocks
 * become messages for chat templates:
 *
 *     system       a message of the role "system" before all others
 *     text         its text; several blocks are joined by newlines
 *     tool_use     a call of the assistant's message
 *     tool_result  a message of the role "tool"
 *     thinking     the assistant's reasoning
 *
 * The model's reasoning is returned as a block of type "thinking", without a signature.
 */
#include <string.h>

#include "plugin/server/messages.h"
#include "plugin/server/openai.h"
#include "plugin/server/tools.h"
#include "runtime/util/json.h"

/* ---- a stream -------------------------------------------------------------------------------- */

/* Values of xm_completion_text.open_block: no block is open, or the type of the open block. */
enum { NO_BLOCK, THINKING, TEXT, CALL };

static void
add_usage(struct xm_json_out *j, yyjson_mut_val *o, const struct xm_usage *u)
{
    yyjson_mut_val *usage = xm_json_add_object(j, o, "usage");
    xm_json_add_whole(j, usage, "input_tokens", u->prompt - u->reused);
    xm_json_add_whole(j, usage, "cache_read_input_tokens", u->reused);
    xm_json_add_whole(j, usage, "output_tokens", u->made);
}

static void
begin_event(struct xm_json_out *j, const char *type)
{
    xm_json_begin(j);
    xm_openai_text(j, NULL, "type", type);
}

/* Adds the members of a message, without content and end. */
static void
add_head(const struct xm_completion *c, struct xm_json_out *j, yyjson_mut_val *o)
{
    xm_openai_text(j, o, "id", c->id);
    xm_openai_text(j, o, "type", "message");
    xm_openai_text(j, o, "role", "assistant");
    xm_openai_text(j, o, "model", c->model->name);
}

static void
tell_begin(struct xm_completion *c)
{
    struct xm_json_out j;
    const struct xm_usage u = {.prompt = c->texts[0].prompt->n};
    begin_event(&j, "message_start");
    yyjson_mut_val *o = xm_json_add_object(&j, NULL, "message");
    add_head(c, &j, o);
    xm_json_add_array(&j, o, "content");
    xm_json_add_null(&j, o, "stop_reason");
    xm_json_add_null(&j, o, "stop_sequence");
    add_usage(&j, o, &u);
    xm_completion_event(c, "message_start", &j);
}

static void
end_block(struct xm_completion_text *t)
{
    struct xm_json_out j;
    if (t->open_block == NO_BLOCK)
        return;
    begin_event(&j, "content_block_stop");
    xm_json_add_whole(&j, NULL, "index", (uint64_t)t->of->next++);
    xm_completion_event(t->of, "content_block_stop", &j);
    t->open_block = NO_BLOCK;
}

/* Adds the members of a tool call's block, without its input. */
static void
add_call(const struct xm_completion_text *t, const struct xm_tool_call *call, size_t i,
         struct xm_json_out *j, yyjson_mut_val *o)
{
    struct xm_strbuf id = {0};
    xm_completion_call_id(t, i, &id);
    xm_openai_text(j, o, "type", "tool_use");
    xm_openai_strbuf(j, o, "id", &id);
    xm_openai_text(j, o, "name", call->name);
    j->failed |= !xm_strbuf_ok(&id);
    xm_strbuf_free(&id);
}

static yyjson_mut_val *
start_block(struct xm_completion_text *t, int block, struct xm_json_out *j)
{
    end_block(t);
    t->open_block = block;
    begin_event(j, "content_block_start");
    xm_json_add_whole(j, NULL, "index", (uint64_t)t->of->next);
    return xm_json_add_object(j, NULL, "content_block");
}

/* Writes a tool call as a block of its own, whose input comes in one delta. */
static void
tell_call(struct xm_completion_text *t, const struct xm_text_part *part)
{
    struct xm_json_out j;
    yyjson_mut_val *o = start_block(t, CALL, &j);
    add_call(t, part->call, part->so_far->calls.n - 1, &j, o);
    xm_json_add_object(&j, o, "input");
    xm_completion_event(t->of, "content_block_start", &j);
    begin_event(&j, "content_block_delta");
    xm_json_add_whole(&j, NULL, "index", (uint64_t)t->of->next);
    o = xm_json_add_object(&j, NULL, "delta");
    xm_openai_text(&j, o, "type", "input_json_delta");
    xm_openai_text(&j, o, "partial_json", part->call->arguments);
    xm_completion_event(t->of, "content_block_delta", &j);
    end_block(t);
}

static void
begin_block(struct xm_completion_text *t, int block)
{
    struct xm_json_out j;
    if (t->open_block == block)
        return;
    yyjson_mut_val *o = start_block(t, block, &j);
    xm_openai_text(&j, o, "type", block == THINKING ? "thinking" : "text");
    xm_openai_text(&j, o, block == THINKING ? "thinking" : "text", "");
    if (block == THINKING)
        xm_openai_text(&j, o, "signature", "");
    xm_completion_event(t->of, "content_block_start", &j);
}

static void
tell_part(struct xm_completion_text *t, const struct xm_text_part *part)
{
    struct xm_json_out j;
    const bool is_thought = part->part == XM_ANSWER_THOUGHT;
    if (part->call) {
        tell_call(t, part);
        return;
    }
    begin_block(t, is_thought ? THINKING : TEXT);
    begin_event(&j, "content_block_delta");
    xm_json_add_whole(&j, NULL, "index", (uint64_t)t->of->next);
    yyjson_mut_val *o = xm_json_add_object(&j, NULL, "delta");
    xm_openai_text(&j, o, "type", is_thought ? "thinking_delta" : "text_delta");
    xm_json_add_text(&j, o, is_thought ? "thinking" : "text", part->text, part->n);
    xm_completion_event(t->of, "content_block_delta", &j);
}

/* Ends a text. A message must have at least one block. */
static void
tell_end(struct xm_completion_text *t)
{
    if (t->open_block == NO_BLOCK && t->of->next == 0)
        begin_block(t, TEXT);
    end_block(t);
}

/* Adds the reason of the end, and the stop string that ended the text. */
static void
add_end(const struct xm_completion_text *t, struct xm_json_out *j, yyjson_mut_val *o)
{
    const size_t stop = t->result.stop;
    const struct xm_slice *found = stop ? &t->of->wish.stops[stop - 1] : NULL;
    xm_openai_text(j, o, "stop_reason",
                   strcmp(t->finish, "length") == 0       ? "max_tokens"
                   : strcmp(t->finish, "tool_calls") == 0 ? "tool_use"
                   : found                                ? "stop_sequence"
                                                          : "end_turn");
    if (found)
        xm_json_add_text(j, o, "stop_sequence", found->text, found->n);
    else
        xm_json_add_null(j, o, "stop_sequence");
}

static void
tell_finish(struct xm_completion *c)
{
    struct xm_json_out j;
    const struct xm_usage u = xm_completion_usage(c);
    begin_event(&j, "message_delta");
    yyjson_mut_val *o = xm_json_add_object(&j, NULL, "delta");
    add_end(&c->texts[0], &j, o);
    add_usage(&j, NULL, &u);
    xm_completion_event(c, "message_delta", &j);
    begin_event(&j, "message_stop");
    xm_completion_event(c, "message_stop", &j);
}

static void
tell_failure(struct xm_completion *c, const struct xm_refusal *why)
{
    struct xm_strbuf text = {0};
    xm_strbuf_add(&text, "event: error\ndata: ");
    xm_refusal_print(why, XM_ERRORS_ANTHROPIC, &text);
    xm_strbuf_add(&text, "\n\n");
    xm_exchange_add(c->x, xm_strbuf_text(&text), text.n);
    xm_strbuf_free(&text);
}

/* ---- the answer in one piece ----------------------------------------------------------------- */

/* Returns a call's input as a JSON object; if the call was cut off, the object of its complete
 * members. */
static yyjson_doc *
input_of(const struct xm_tool_call *call)
{
    yyjson_doc *doc = NULL;
    struct xm_strbuf text = {0};
    xm_strbuf_add(&text, call->arguments);
    if (call->is_cut)
        xm_tool_call_close(&text);
    if (xm_strbuf_ok(&text))
        (void)xm_json_parse(xm_strbuf_text(&text), text.n, &doc, NULL);
    xm_strbuf_free(&text);
    return doc;
}

static void
add_calls_made(const struct xm_completion_text *t, struct xm_json_out *j,
               yyjson_mut_val *list)
{
    for (size_t i = 0; i < t->result.calls.n; i++) {
        const struct xm_tool_call *call = &t->result.calls.list[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        yyjson_doc *input = input_of(call);
        add_call(t, call, i, j, o);
        if (input)
            xm_json_add_value(j, o, "input",
                              yyjson_val_mut_copy(j->doc, yyjson_doc_get_root(input)));
        else if (call->is_cut)
            xm_json_add_object(j, o, "input");
        j->failed |= !input && !call->is_cut;
        yyjson_doc_free(input);
    }
}

static void
answer_whole(struct xm_completion *c, struct xm_json_out *j)
{
    const struct xm_completion_text *t = &c->texts[0];
    const struct xm_usage u = xm_completion_usage(c);
    add_head(c, j, NULL);
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "content");
    if (t->thought.n) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_openai_text(j, o, "type", "thinking");
        xm_openai_strbuf(j, o, "thinking", &t->thought);
        xm_openai_text(j, o, "signature", "");
    }
    if (t->text.n || (!t->thought.n && !t->result.calls.n)) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_openai_text(j, o, "type", "text");
        xm_openai_strbuf(j, o, "text", &t->text);
    }
    add_calls_made(t, j, list);
    add_end(t, j, NULL);
    add_usage(j, NULL, &u);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The conversation that is made from the request's. */
struct making {
    struct xm_json_out j, variables;
    yyjson_mut_val *list;
    const struct xm_wish *w;
    struct xm_refusal *r;
};

static bool
add_system(struct making *m, yyjson_val *body)
{
    struct xm_strbuf text = {0};
    yyjson_val *system = yyjson_obj_get(body, "system");
    const bool is_empty = yyjson_is_arr(system) && yyjson_arr_size(system) == 0;
    const bool good = !system || yyjson_is_null(system) || is_empty ||
                      xm_content_text(system, "system", "text", &text, m->r);
    if (good && text.n)
        xm_messages_add(&m->j, m->list, "system", &text);
    xm_strbuf_free(&text);
    return good;
}

/* The text and reasoning of a message, collected while its blocks are read. */
struct parts {
    struct xm_strbuf text, thought;
};

static bool
add_result(struct making *m, yyjson_val *block, const char *where, struct parts *parts)
{
    struct xm_strbuf text = {0};
    yyjson_val *id, *content = yyjson_obj_get(block, "content");
    (void)parts;
    const bool has_text = content && !yyjson_is_null(content) &&
                          !(yyjson_is_arr(content) && yyjson_arr_size(content) == 0);
    const bool good =
        xm_wish_text(block, xm_place("%s.tool_use_id", where).text, &id, m->r) &&
        (!has_text || xm_content_text(content, xm_place("%s.content", where).text, "text",
                                      &text, m->r));
    if (good) {
        yyjson_mut_val *o = xm_messages_add(&m->j, m->list, "tool", &text);
        if (id)
            xm_json_add_text(&m->j, o, "tool_call_id", yyjson_get_str(id),
                             yyjson_get_len(id));
    }
    xm_strbuf_free(&text);
    return good;
}

static bool
join(struct making *m, yyjson_val *block, const char *key, const char *where,
     struct xm_strbuf *to)
{
    yyjson_val *text = yyjson_obj_get(block, key);
    if (!yyjson_is_str(text))
        return xm_refuse_value(m->r, xm_place("%s.%s", where, key).text, text,
                               "a string");
    if (to->n)
        xm_strbuf_add(to, "\n");
    xm_strbuf_add_n(to, yyjson_get_str(text), yyjson_get_len(text));
    return true;
}

static bool
add_text(struct making *m, yyjson_val *block, const char *where, struct parts *parts)
{
    return join(m, block, "text", where, &parts->text);
}

static bool
add_thought(struct making *m, yyjson_val *block, const char *where, struct parts *parts)
{
    return join(m, block, "thinking", where, &parts->thought);
}

/* Skips a block: tool calls are added later, when the message exists; redacted thinking is
 * ignored. */
static bool
pass_over(struct making *m, yyjson_val *block, const char *where, struct parts *parts)
{
    (void)m;
    (void)block;
    (void)where;
    (void)parts;
    return true;
}

static const struct block {
    const char *type;
    bool of_user, of_assistant;
    bool (*read)(struct making *m, yyjson_val *block, const char *where,
                 struct parts *parts);
} blocks[] = {
    {"text", true, true, add_text},
    {"tool_result", true, false, add_result},
    {"tool_use", false, true, pass_over},
    {"thinking", false, true, add_thought},
    {"redacted_thinking", false, true, pass_over},
};

static bool
read_block(struct making *m, bool is_user, yyjson_val *block, const char *where,
           struct parts *parts)
{
    yyjson_val *type = yyjson_obj_get(block, "type");
    if (!yyjson_is_obj(block))
        return xm_refuse_value(m->r, where, block,
                               "a content block: an object with a 'type'");
    for (size_t i = 0; i < XM_ARRAY_LEN(blocks); i++)
        if ((is_user ? blocks[i].of_user : blocks[i].of_assistant) &&
            yyjson_equals_str(type, blocks[i].type))
            return blocks[i].read(m, block, where, parts);
    return xm_refuse(m->r, 400, xm_place("%s.type", where).text, "unsupported_content",
                     "'%s.type' is %s, expected %s", where, xm_json_shown(type).text,
                     is_user ? "text or tool_result of a user"
                             : "text, tool_use or thinking of an assistant");
}

static bool
add_calls(struct making *m, yyjson_mut_val *message, yyjson_val *content,
          const char *where)
{
    static const struct xm_call_members as = {NULL, "id", "input"};
    yyjson_val *block;
    size_t i, n;
    yyjson_arr_foreach(content, i, n, block)
    {
        if (yyjson_equals_str(yyjson_obj_get(block, "type"), "tool_use") &&
            !xm_messages_add_call(&m->j, message, &as, block,
                                  xm_place("%s[%zu]", where, i).text, m->r))
            return false;
    }
    return true;
}

/* Adds a message with the text and reasoning of its blocks; tool results become messages before
 * it. */
static bool
add_blocks(struct making *m, const char *role, yyjson_val *content, const char *where)
{
    struct parts parts = {{0}, {0}};
    const bool is_user = strcmp(role, "user") == 0;
    yyjson_val *block;
    size_t i, n;
    bool good = true;
    yyjson_arr_foreach(content, i, n, block)
    {
        good = good &&
               read_block(m, is_user, block, xm_place("%s[%zu]", where, i).text, &parts);
    }
    if (good && (parts.text.n || !is_user)) {
        yyjson_mut_val *o = xm_messages_add(&m->j, m->list, role, &parts.text);
        if (parts.thought.n)
            xm_openai_strbuf(&m->j, o, "reasoning_content", &parts.thought);
        good = add_calls(m, o, content, where);
    }
    if (good && !(xm_strbuf_ok(&parts.text) && xm_strbuf_ok(&parts.thought)))
        good = xm_refuse(m->r, 503, NULL, NULL, "out of memory for the messages");
    xm_strbuf_free(&parts.text);
    xm_strbuf_free(&parts.thought);
    return good;
}

static bool
add_message(struct making *m, yyjson_val *message, size_t i)
{
    yyjson_val *role = yyjson_obj_get(message, "role");
    yyjson_val *content = yyjson_obj_get(message, "content");
    const bool is_user = yyjson_equals_str(role, "user");
    const struct xm_shown where = xm_place("messages[%zu]", i);
    struct xm_strbuf text = {0};
    if (!yyjson_is_obj(message))
        return xm_refuse_value(m->r, where.text, message,
                               "an object with 'role' and 'content'");
    if (!is_user && !yyjson_equals_str(role, "assistant"))
        return xm_refuse_value(m->r, xm_place("%s.role", where.text).text, role,
                               "user or assistant");
    const struct xm_shown place = xm_place("%s.content", where.text);
    if (yyjson_is_arr(content) && yyjson_arr_size(content) > 0)
        return add_blocks(m, is_user ? "user" : "assistant", content, place.text);
    if (!yyjson_is_str(content))
        return xm_refuse_value(m->r, place.text, content,
                               "a string or a list of content blocks");
    const bool good = xm_content_text(content, place.text, "text", &text, m->r);
    xm_messages_add(&m->j, m->list, is_user ? "user" : "assistant", &text);
    xm_strbuf_free(&text);
    return good;
}

static bool
make_messages(struct making *m, yyjson_val *body, struct xm_messages *out)
{
    yyjson_val *messages = yyjson_obj_get(body, "messages"), *message;
    size_t i, n;
    if (yyjson_arr_size(messages) == 0)
        return xm_refuse_value(m->r, "messages", messages, "a list of messages");
    m->list = xm_json_add_array(&m->j, NULL, "messages");
    if (!add_system(m, body))
        return false;
    yyjson_arr_foreach(messages, i, n, message)
    {
        if (!add_message(m, message, i))
            return false;
    }
    xm_tools_add(m->w, &m->variables);
    return xm_messages_take_begun(body, m->list, out, m->r) &&
           xm_template_variables(body, &m->variables, m->r) &&
           xm_messages_finish(&m->j, m->list, &m->variables, out, m->r);
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool
read_messages(const struct xm_wish *w, yyjson_val *body, struct xm_messages *out,
              struct xm_refusal *r)
{
    struct making m = {.r = r, .w = w};
    *out = (struct xm_messages){NULL, NULL, {0}};
    xm_json_begin(&m.j);
    xm_json_begin(&m.variables);
    const bool good = make_messages(&m, body, out);
    xm_json_end(&m.j);
    xm_json_end(&m.variables);
    if (!good)
        xm_messages_free(out);
    return good;
}

static bool
add_prompt(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    struct xm_messages messages;
    if (!read_messages(&c->wish, body, &messages, r))
        return false;
    const struct xm_prompt prompt = xm_messages_prompt(&messages);
    const bool good = xm_completion_add(c, &prompt, "messages", r);
    xm_messages_free(&messages);
    return good;
}

static bool
read_wish(struct xm_completion *c, yyjson_val *body, struct xm_refusal *r)
{
    if (!xm_wish_read(&c->wish, body, r) ||
        !xm_wish_stops(&c->wish, body, "stop_sequences", r) ||
        !xm_tools_read(&c->wish, XM_TOOLS_MESSAGES, body, r) ||
        !xm_tools_grammar(&c->wish, r))
        return false;
    return xm_wish_is_one(&c->wish, r) &&
           (c->wish.max_tokens < UINT64_MAX ||
            xm_refuse_value(r, "max_tokens", yyjson_obj_get(body, "max_tokens"),
                            "a whole number from 1"));
}

static const struct xm_dialect anthropic = {
    .is_chat = true,
    .read_wish = read_wish,
    .add_prompts = add_prompt,
    .prefix = "msg_",
    .begin = tell_begin,
    .part = tell_part,
    .end = tell_end,
    .finish = tell_finish,
    .fail = tell_failure,
    .whole = answer_whole,
};

void
xm_answer_messages(struct xm_exchange *x)
{
    xm_completion_answer(x, &anthropic);
}

/* ---- POST /v1/messages/count_tokens ---------------------------------------------------------- */

/* Counts the tokens of the prompt that /v1/messages would make of the same body. */
static bool
count_tokens(const struct xm_exchange *x, yyjson_val *body, size_t *n,
             struct xm_refusal *r)
{
    struct xm_served *model = xm_body_model(x, body, r);
    struct xm_messages messages;
    struct xm_token_list ids = {0};
    struct xm_error why = {0};
    struct xm_wish w;
    if (!model || !xm_served_takes_messages(model, r))
        return false;
    xm_wish_init(&w, model);
    bool good = xm_tools_read(&w, XM_TOOLS_MESSAGES, body, r) &&
                read_messages(&w, body, &messages, r);
    if (good) {
        const struct xm_prompt prompt = xm_messages_prompt(&messages);
        good = xm_prompt_encode(model->package, &prompt, model->vocabulary, &ids, &why) ==
                   XM_OK ||
               xm_refuse_at(r, "messages", "invalid_prompt", &why);
        xm_messages_free(&messages);
    }
    *n = ids.n;
    xm_token_list_free(&ids);
    xm_wish_free(&w);
    return good;
}

void
xm_answer_message_tokens(struct xm_exchange *x)
{
    struct xm_refusal r = {0};
    struct xm_json_out j;
    yyjson_doc *doc = NULL;
    size_t n = 0;
    const bool good =
        xm_body_read(x, &doc, &r) && count_tokens(x, yyjson_doc_get_root(doc), &n, &r);
    yyjson_doc_free(doc);
    if (!good) {
        xm_refusal_answer(&r, x);
        return;
    }
    xm_json_begin(&j);
    xm_json_add_whole(&j, NULL, "input_tokens", n);
    xm_answer_json(x, &j);
}
