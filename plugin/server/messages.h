/* SPDX-License-Identifier: Apache-2.0
 *
 * The conversation of a request, in the form that chat templates take.
 *
 * Of each message the members that templates know are taken: role, content, name, tool calls and
 * their results, and what the model has reasoned. Roles are those of a list, because templates may
 * write them between control tokens; everything else stays text (xm_chat_template_render_marked).
 *
 *     content      parts of type "text" are joined by line feeds; others are refused
 *     developer    is the role "system"
 *     assistant    the last of several messages, if it is text without calls or reasoning, begins
 *                  the answer; not of /v1/responses
 *     arguments    of a tool's call, JSON in a string, are the object that is meant
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
    struct xm_strbuf begun; /* the answer, by a last message of the assistant */
};
void xm_messages_free(struct xm_messages *m);
/* The same as a prompt, which points into it. */
struct xm_prompt xm_messages_prompt(const struct xm_messages *m);

/* Reads "messages" and "chat_template_kwargs"; the tools are the wish's. */
bool xm_messages_read(yyjson_val *body, const struct xm_wish *w, struct xm_messages *out,
                      struct xm_refusal *r);

/* ---- for other forms of requests ---- */

/* Appends the text of a content: a string, or a list of parts, one at least, whose type is one of
 * the words of `types`. `where` is its place in the request. */
bool xm_content_text(yyjson_val *content, const char *where, const char *types,
                     struct xm_strbuf *out, struct xm_refusal *r);
/* Adds to the list of messages one with this role and text. */
yyjson_mut_val *xm_messages_add(struct xm_json_out *j, yyjson_mut_val *list,
                                const char *role, const struct xm_strbuf *text);
/* What an API calls the members of a tool's call. */
struct xm_call_members {
    const char
        *function; /* which has the name and the arguments; NULL: the call itself */
    const char *id, *arguments;
};
/* Adds a call of a tool to an assistant's message; its arguments are an object, or JSON in a
 * string. `where` is the call's place in the request. */
bool xm_messages_add_call(struct xm_json_out *j, yyjson_mut_val *message,
                          const struct xm_call_members *as, yyjson_val *call,
                          const char *where, struct xm_refusal *r);
/* Where the last of at least two messages is an assistant's text, without tool_calls and
 * reasoning_content, it begins the answer: takes it from the list, unless the body has
 * "continue_final_message": false. */
bool xm_messages_take_begun(yyjson_val *body, yyjson_mut_val *list,
                            struct xm_messages *out, struct xm_refusal *r);
/* Ends both documents, whose roots are a list of messages below the key "messages", and the
 * variables. */
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
