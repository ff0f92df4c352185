/* SPDX-License-Identifier: Apache-2.0
 *
 * The conversation of a request, in the form that chat templates expect.
 *
 * The members of messages that templates know are copied: role, content, name, tool calls and their
 * results, and the model's reasoning. A role must be in a fixed list, because templates may write
 * it between control tokens; all other strings stay text (xm_chat_template_render_marked).
 *
 *     content      parts of type "text" are joined by newlines; other types are refused
 *     developer    becomes the role "system"
 *     assistant    if the last of several messages, without calls or reasoning, it begins the
 *                  answer; not in /v1/responses
 *     arguments    of a tool call: JSON in a string becomes the object that it encodes
 */
#ifndef XM_PLUGIN_SERVER_MESSAGES_H
#define XM_PLUGIN_SERVER_MESSAGES_H

#include <yyjson.h>

#include "plugin/pipeline/prompt.h"
#include "plugin/program_util/json_out.h"
#include "plugin/server/refusal.h"
#include "plugin/server/wish.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The conversation as a JSON list, and the template's variables as a JSON object. */
struct xm_messages {
    char *text, *variables; /* owned; variables: NULL: none */
    /* beginning of the answer, from the assistant's last message */
    struct xm_strbuf begun;
};
void xm_messages_free(struct xm_messages *m);
/* Returns the conversation as a prompt, which refers to *m. */
struct xm_prompt xm_messages_prompt(const struct xm_messages *m);

/* Reads "messages" and "chat_template_kwargs" of the body; the tools come from the wish. */
bool xm_messages_read(yyjson_val *body, const struct xm_wish *w, struct xm_messages *out,
                      struct xm_refusal *r);

/* ---- functions for other forms of requests ---- */

/* Appends the text of a content: a string, or a non-empty list of parts with types in the list of
 * words `types`. `where` is the content's place in the request. */
bool xm_content_text(yyjson_val *content, const char *where, const char *types,
                     struct xm_strbuf *out, struct xm_refusal *r);
/* Adds a message with this role and text to the list. */
yyjson_mut_val *xm_messages_add(struct xm_json_out *j, yyjson_mut_val *list,
                                const char *role, const struct xm_strbuf *text);
/* The names that an API uses for members of a tool call. */
struct xm_call_members {
    const char *function; /* the member with name and arguments; NULL: the call itself */
    const char *id, *arguments;
};
/* Adds a tool call to an assistant's message; its arguments are an object, or JSON in a string.
 * `where` is the call's place in the request. */
bool xm_messages_add_call(struct xm_json_out *j, yyjson_mut_val *message,
                          const struct xm_call_members *as, yyjson_val *call,
                          const char *where, struct xm_refusal *r);
/* If the last of at least two messages is an assistant's text, without tool_calls and
 * reasoning_content, it begins the answer: removes it from the list, unless the body has
 * "continue_final_message": false. */
bool xm_messages_take_begun(yyjson_val *body, yyjson_mut_val *list,
                            struct xm_messages *out, struct xm_refusal *r);
/* Completes both documents: the list of messages, with the key "messages", and the variables. */
bool xm_messages_finish(struct xm_json_out *j, yyjson_mut_val *list,
                        struct xm_json_out *variables, struct xm_messages *out,
                        struct xm_refusal *r);
/* Reads "chat_template_kwargs" into the variables. */
bool xm_template_variables(yyjson_val *body, struct xm_json_out *variables,
                           struct xm_refusal *r);

#ifdef __cplusplus
}
#endif
#endif
