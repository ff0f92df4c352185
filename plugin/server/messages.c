/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/messages.h"

#include <stdio.h>
#include <string.h>

#include "plugin/server/tools.h"
#include "runtime/util/json.h"
#include "runtime/util/memory.h"

static const struct {
    const char *said, *role;
} roles[] = {
    {"system", "system"}, {"developer", "system"}, {"user", "user"},
    {"tool", "tool"},     {"function", "tool"},    {"assistant", "assistant"},
};

void
xm_messages_free(struct xm_messages *m)
{
    xm_free(m->text);
    xm_free(m->variables);
    xm_strbuf_free(&m->begun);
    *m = (struct xm_messages){NULL, NULL, {0}};
}

struct xm_prompt
xm_messages_prompt(const struct xm_messages *m)
{
    return (struct xm_prompt){.kind = XM_PROMPT_MESSAGES,
                              .text = m->text,
                              .variables = m->variables,
                              .begun = xm_strbuf_text(&m->begun),
                              .n_begun = m->begun.n};
}

static bool
no_memory(struct xm_refusal *r)
{
    return xm_refuse(r, 503, NULL, NULL, "out of memory for the conversation");
}

/* ---- content --------------------------------------------------------------------------------- */

/* Returns a member; NULL: it is absent or null. */
static yyjson_val *
member(yyjson_val *o, const char *name)
{
    yyjson_val *v = yyjson_obj_get(o, name);
    return v && !yyjson_is_null(v) ? v : NULL;
}

static bool
add_part(yyjson_val *part, const char *where, const char *types, struct xm_strbuf *out,
         struct xm_refusal *r)
{
    yyjson_val *type = yyjson_obj_get(part, "type");
    const char *word = yyjson_get_str(type);
    const char *key = word && strcmp(word, "refusal") == 0 ? word : "text";
    yyjson_val *text = yyjson_obj_get(part, key);
    if (!yyjson_is_obj(part))
        return xm_refuse_value(r, where, part, "an object with 'type' and 'text'");
    if (!word || !xm_list_has(types, ' ', word, strlen(word)))
        return xm_refuse(r, 400, xm_place("%s.type", where).text, "unsupported_content",
                         "'%s.type' is %s, expected %.*s: only text is supported", where,
                         xm_json_shown(type).text, (int)strcspn(types, " "), types);
    if (!yyjson_is_str(text))
        return xm_refuse_value(r, xm_place("%s.%s", where, key).text, text, "a string");
    if (out->n)
        xm_strbuf_add(out, "\n");
    xm_strbuf_add_n(out, yyjson_get_str(text), yyjson_get_len(text));
    return true;
}

bool
xm_content_text(yyjson_val *content, const char *where, const char *types,
                struct xm_strbuf *out, struct xm_refusal *r)
{
    yyjson_val *part;
    size_t i, n;
    if (yyjson_is_str(content))
        xm_strbuf_add_n(out, yyjson_get_str(content), yyjson_get_len(content));
    else if (!yyjson_is_arr(content) || yyjson_arr_size(content) == 0)
        return xm_refuse_value(r, where, content, "a string or a list of parts");
    yyjson_arr_foreach(content, i, n, part)
    {
        if (!add_part(part, xm_place("%s[%zu]", where, i).text, types, out, r))
            return false;
    }
    return xm_strbuf_ok(out) || no_memory(r);
}

yyjson_mut_val *
xm_messages_add(struct xm_json_out *j, yyjson_mut_val *list, const char *role,
                const struct xm_strbuf *text)
{
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_json_add_text(j, o, "role", role, strlen(role));
    xm_json_add_text(j, o, "content", xm_strbuf_text(text), text->n);
    return o;
}

/* ---- calls of tools -------------------------------------------------------------------------- */

static void
add_copy(struct xm_json_out *j, yyjson_mut_val *o, const char *key, yyjson_val *v)
{
    xm_json_add_value(j, o, key, yyjson_val_mut_copy(j->doc, v));
}

/* Adds arguments: a string with JSON becomes its value; any other string stays a string. */
static void
add_arguments(struct xm_json_out *j, yyjson_mut_val *o, yyjson_val *arguments)
{
    yyjson_doc *doc = NULL;
    if (yyjson_is_str(arguments) && yyjson_get_len(arguments) > 0 &&
        xm_json_parse(yyjson_get_str(arguments), yyjson_get_len(arguments), &doc, NULL) ==
            XM_OK &&
        yyjson_is_obj(yyjson_doc_get_root(doc)))
        arguments = yyjson_doc_get_root(doc);
    if (arguments)
        add_copy(j, o, "arguments", arguments);
    yyjson_doc_free(doc);
}

bool
xm_messages_add_call(struct xm_json_out *j, yyjson_mut_val *message,
                     const struct xm_call_members *as, yyjson_val *call,
                     const char *where, struct xm_refusal *r)
{
    yyjson_mut_val *calls = yyjson_mut_obj_get(message, "tool_calls");
    yyjson_val *id, *name;
    yyjson_val *o = as->function ? yyjson_obj_get(call, as->function) : call;
    yyjson_val *arguments = member(o, as->arguments);
    const struct xm_shown place = xm_place("%s%s%s", where, as->function ? "." : "",
                                           as->function ? as->function : "");
    if (!yyjson_is_obj(call) || !yyjson_is_obj(o))
        return xm_refuse_value(r, yyjson_is_obj(call) ? place.text : where,
                               yyjson_is_obj(call) ? o : call, "an object");
    if (!xm_wish_text(call, xm_place("%s.%s", where, as->id).text, &id, r) ||
        !xm_wish_text(o, xm_place("%s.name", place.text).text, &name, r))
        return false;
    if (!name)
        return xm_refuse_value(r, xm_place("%s.name", place.text).text,
                               yyjson_obj_get(o, "name"), "the name of a tool");
    if (arguments && !yyjson_is_str(arguments) && !yyjson_is_obj(arguments))
        return xm_refuse_value(r, xm_place("%s.%s", place.text, as->arguments).text,
                               arguments, "an object, or a string with a JSON object");
    if (!calls)
        calls = xm_json_add_array(j, message, "tool_calls");
    yyjson_mut_val *made = xm_json_add_object(j, calls, NULL);
    if (id)
        add_copy(j, made, "id", id);
    xm_json_add_text(j, made, "type", "function", strlen("function"));
    yyjson_mut_val *function = xm_json_add_object(j, made, "function");
    add_copy(j, function, "name", name);
    add_arguments(j, function, arguments);
    return true;
}

static bool
add_calls(struct xm_json_out *j, yyjson_mut_val *message, yyjson_val *calls,
          const char *where, struct xm_refusal *r)
{
    static const struct xm_call_members as = {"function", "id", "arguments"};
    yyjson_val *call;
    size_t i, n;
    if (calls && !yyjson_is_arr(calls))
        return xm_refuse_value(r, xm_place("%s.tool_calls", where).text, calls,
                               "a list of calls");
    yyjson_arr_foreach(calls, i, n, call)
    {
        if (!xm_messages_add_call(j, message, &as, call,
                                  xm_place("%s.tool_calls[%zu]", where, i).text, r))
            return false;
    }
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static const char *
role_of(yyjson_val *message, const char *where, struct xm_refusal *r)
{
    yyjson_val *role = yyjson_obj_get(message, "role");
    for (size_t i = 0; i < XM_ARRAY_LEN(roles); i++)
        if (yyjson_equals_str(role, roles[i].said))
            return roles[i].role;
    if (!yyjson_is_obj(message))
        xm_refuse_value(r, where, message, "an object with 'role' and 'content'");
    else
        xm_refuse_value(r, xm_place("%s.role", where).text, role,
                        "system, developer, user, assistant or tool");
    return NULL;
}

static bool
add_texts(struct xm_json_out *j, yyjson_mut_val *o, yyjson_val *message,
          const char *where, struct xm_refusal *r)
{
    static const char *const names[] = {"name", "tool_call_id", "reasoning_content"};
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        yyjson_val *v;
        if (!xm_wish_text(message, xm_place("%s.%s", where, names[i]).text, &v, r))
            return false;
        if (v)
            add_copy(j, o, names[i], v);
    }
    return true;
}

/* Whether the message must have content: an assistant's message need not if it has tool calls or
 * reasoning. */
static bool
needs_content(const char *role, yyjson_val *message)
{
    return strcmp(role, "assistant") != 0 ||
           (yyjson_arr_size(yyjson_obj_get(message, "tool_calls")) == 0 &&
            !member(message, "reasoning_content"));
}

static bool
add_message(struct xm_json_out *j, yyjson_mut_val *list, yyjson_val *message, size_t i,
            struct xm_refusal *r)
{
    const struct xm_shown where = xm_place("messages[%zu]", i);
    struct xm_strbuf text = {0};
    const char *role = role_of(message, where.text, r);
    yyjson_val *content = yyjson_obj_get(message, "content");
    bool good = role != NULL;
    const bool is_empty = yyjson_is_arr(content) && yyjson_arr_size(content) == 0;
    if (good &&
        ((member(message, "content") && !is_empty) || needs_content(role, message)))
        good = xm_content_text(content, xm_place("%s.content", where.text).text,
                               "text refusal", &text, r);
    if (good) {
        yyjson_mut_val *o = xm_messages_add(j, list, role, &text);
        good = add_texts(j, o, message, where.text, r) &&
               add_calls(j, o, member(message, "tool_calls"), where.text, r);
    }
    xm_strbuf_free(&text);
    return good;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Whether a template variable may not be set by requests: the conversation's own variables, and
 * names whose values are control tokens. */
static bool
is_kept(const char *name)
{
    static const char end[] = "_token";
    const size_t n = strlen(name), k = sizeof(end) - 1;
    return xm_list_has("messages tools documents", ' ', name, n) ||
           (n >= k && strcmp(name + n - k, end) == 0);
}

bool
xm_template_variables(yyjson_val *body, struct xm_json_out *variables,
                      struct xm_refusal *r)
{
    static const char name[] = "chat_template_kwargs";
    yyjson_val *o = yyjson_obj_get(body, name), *key, *v;
    size_t i, n;
    if (!o || yyjson_is_null(o))
        return true;
    if (!yyjson_is_obj(o))
        return xm_refuse_value(r, name, o, "an object");
    yyjson_obj_foreach(o, i, n, key, v)
    {
        if (is_kept(yyjson_get_str(key)))
            return xm_refuse(
                r, 400, name, "invalid_value",
                "'%s' cannot set the variable '%s' of the chat template", name,
                xm_utf8_shown(xm_slice_of(yyjson_get_str(key), yyjson_get_len(key)))
                    .text);
        add_copy(variables, NULL, yyjson_get_str(key), v);
    }
    return true;
}

/* ---- the result ---------------------------------------------------------------------------- */

bool
xm_messages_finish(struct xm_json_out *j, yyjson_mut_val *list,
                   struct xm_json_out *variables, struct xm_messages *out,
                   struct xm_refusal *r)
{
    const bool has_variables = yyjson_mut_obj_size(variables->root) > 0;
    if (j->failed || variables->failed || !xm_strbuf_ok(&out->begun))
        return no_memory(r);
    out->text = xm_json_value_text(list);
    out->variables = has_variables ? xm_json_value_text(variables->root) : NULL;
    if (out->text && (out->variables || !has_variables))
        return true;
    return no_memory(r);
}

bool
xm_messages_take_begun(yyjson_val *body, yyjson_mut_val *list, struct xm_messages *out,
                       struct xm_refusal *r)
{
    yyjson_mut_val *last = yyjson_mut_arr_get_last(list);
    yyjson_mut_val *text = yyjson_mut_obj_get(last, "content");
    bool continues = true;
    if (!xm_wish_flag(body, "continue_final_message", &continues, r))
        return false;
    if (!continues || yyjson_mut_arr_size(list) < 2 ||
        !yyjson_mut_equals_str(yyjson_mut_obj_get(last, "role"), "assistant") ||
        yyjson_mut_obj_get(last, "tool_calls") ||
        yyjson_mut_obj_get(last, "reasoning_content") || yyjson_mut_get_len(text) == 0)
        return true;
    xm_strbuf_add_n(&out->begun, yyjson_mut_get_str(text), yyjson_mut_get_len(text));
    yyjson_mut_arr_remove_last(list);
    return true;
}

static bool
read_all(yyjson_val *body, const struct xm_wish *w, struct xm_json_out *j,
         struct xm_json_out *variables, struct xm_messages *out, struct xm_refusal *r)
{
    yyjson_val *messages = yyjson_obj_get(body, "messages"), *message;
    size_t i, n;
    if (!yyjson_is_arr(messages) || yyjson_arr_size(messages) == 0)
        return xm_refuse_value(r, "messages", messages, "a list of messages");
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "messages");
    yyjson_arr_foreach(messages, i, n, message)
    {
        if (!add_message(j, list, message, i, r))
            return false;
    }
    xm_tools_add(w, variables);
    return xm_messages_take_begun(body, list, out, r) &&
           xm_template_variables(body, variables, r) &&
           xm_messages_finish(j, list, variables, out, r);
}

bool
xm_messages_read(yyjson_val *body, const struct xm_wish *w, struct xm_messages *out,
                 struct xm_refusal *r)
{
    struct xm_json_out j, variables;
    *out = (struct xm_messages){NULL, NULL, {0}};
    xm_json_begin(&j);
    xm_json_begin(&variables);
    const bool good = read_all(body, w, &j, &variables, out, r);
    xm_json_end(&j);
    xm_json_end(&variables);
    if (!good)
        xm_messages_free(out);
    return good;
}
