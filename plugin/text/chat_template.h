/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation as the text that a model was trained on.
 *
 * The template is the first there is of these in the model folder: "chat_template" in the rt_info
 * of openvino_tokenizer.xml, where it can be parsed; chat_template.jinja; "chat_template" of
 * chat_template.json, tokenizer_config.json or processor_config.json, a string, or a list of
 * named ones of which "default" is taken. It sees what the reference's callers pass: messages,
 * add_generation_prompt, tools and documents (none when not given) and the special tokens of
 * tokenizer_config.json.
 *
 * The text has its special tokens in it: encode it without adding any.
 */
#ifndef XM_PLUGIN_TEXT_CHAT_TEMPLATE_H
#define XM_PLUGIN_TEXT_CHAT_TEMPLATE_H

#include <stdbool.h>

#include <yyjson.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_chat_template;

/* XM_NOT_FOUND when the folder has no template. */
enum xm_status xm_chat_template_load(const char *model_folder,
                                     struct xm_chat_template **out, struct xm_error *err);

/* Another template in the place of the folder's, with the folder's special tokens. */
enum xm_status xm_chat_template_load_with(const char *model_folder, const char *text,
                                          size_t n, struct xm_chat_template **out,
                                          struct xm_error *err);

/* From the template's text alone: there are no special tokens. */
enum xm_status xm_chat_template_parse(const char *text, size_t n,
                                      struct xm_chat_template **out,
                                      struct xm_error *err);
/* With special tokens, an object as tokenizer_config.json has them: it becomes the template's. */
void xm_chat_template_set_tokens(struct xm_chat_template *tmpl, yyjson_doc *tokens);
/* Whether its text has these characters somewhere. */
bool xm_chat_template_mentions(const struct xm_chat_template *tmpl, const char *text);
void xm_chat_template_free(struct xm_chat_template *tmpl); /* NULL is allowed */

/* Appends the text of the conversation. `messages_json` is an array; `extra_json` (may be
 * NULL) an object whose members are further variables, and win over those above. When the
 * template calls raise_exception, its text is in the sentence. Many threads may render at
 * once. On failure `out` holds a part. */
enum xm_status xm_chat_template_render(const struct xm_chat_template *tmpl,
                                       const char *messages_json,
                                       bool add_generation_prompt, const char *extra_json,
                                       struct xm_strbuf *out, struct xm_error *err);
/* The same with a byte of `marks` for each byte of text: 1 where the text comes from messages,
 * tools, documents or further variables, in which there are no control tokens
 * (xm_tokenizer_encode_marked). Roles of messages, types of parts and variables whose names end
 * with "_token" are the template's. */
enum xm_status
xm_chat_template_render_marked(const struct xm_chat_template *tmpl,
                               const char *messages_json, bool add_generation_prompt,
                               const char *extra_json, struct xm_strbuf *out,
                               struct xm_strbuf *marks, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
