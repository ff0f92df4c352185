/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates: turn a conversation (messages with roles) into the prompt text that a model was
 * trained on.
 *
 * A model folder's template is the first of these that exists:
 *
 *     1. "chat_template" in the rt_info of openvino_tokenizer.xml, if it can be parsed
 *     2. chat_template.jinja
 *     3. "chat_template" of chat_template.json, tokenizer_config.json or processor_config.json: a
 *        string, or a list of named templates, of which "default" is taken
 *
 * The template's variables are those that Hugging Face's transformers passes: messages,
 * add_generation_prompt, tools and documents (none if not given) and the special tokens of
 * tokenizer_config.json.
 *
 * The rendered text contains its special tokens: encode it with add_special = false.
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

/* Loads the template of a model folder. XM_NOT_FOUND: the folder has none. */
enum xm_status xm_chat_template_load(const char *model_folder,
                                     struct xm_chat_template **out, struct xm_error *err);

/* Parses `text` (n bytes) instead of the folder's template; the special tokens are still the
 * folder's. */
enum xm_status xm_chat_template_load_with(const char *model_folder, const char *text,
                                          size_t n, struct xm_chat_template **out,
                                          struct xm_error *err);

/* Parses `text` (n bytes), without special tokens. */
enum xm_status xm_chat_template_parse(const char *text, size_t n,
                                      struct xm_chat_template **out,
                                      struct xm_error *err);
/* Sets the special tokens: `tokens` is an object with tokenizer_config.json's members. The template
 * takes ownership. */
void xm_chat_template_set_tokens(struct xm_chat_template *tmpl, yyjson_doc *tokens);
/* Returns whether the template's source contains `text`. */
bool xm_chat_template_mentions(const struct xm_chat_template *tmpl, const char *text);
void xm_chat_template_free(struct xm_chat_template *tmpl); /* NULL is allowed */

/* Appends the text of the conversation. `messages_json` is a JSON array; `extra_json` (may be NULL)
 * is a JSON object with further variables, which replace variables of the same name. If the
 * template calls raise_exception, the error message has its text. Many threads may render at once.
 * On failure `out` has a part of the text. */
enum xm_status xm_chat_template_render(const struct xm_chat_template *tmpl,
                                       const char *messages_json,
                                       bool add_generation_prompt, const char *extra_json,
                                       struct xm_strbuf *out, struct xm_error *err);
/* Renders like xm_chat_template_render and appends to `marks` one byte for each byte of text: 1 if
 * the byte comes from messages, tools, documents or extra_json, 0 if the template wrote it. Control
 * tokens are not recognised in marked text (xm_tokenizer_encode_marked). Not marked: message roles,
 * types of content parts, and variables whose names end with "_token". */
enum xm_status
xm_chat_template_render_marked(const struct xm_chat_template *tmpl,
                               const char *messages_json, bool add_generation_prompt,
                               const char *extra_json, struct xm_strbuf *out,
                               struct xm_strbuf *marks, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
