/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools of a request, and whether its answer has to call one:
 *
 *     tools                  functions with a name and a JSON Schema of their arguments
 *     tool_choice            auto, none, any call (required, any), or a call of one function
 *     parallel_tool_calls    false: one call at most (Anthropic: disable_parallel_tool_use)
 *
 * The model is told of the tools by its chat template. Calls that are forced, strict or bounded are
 * written by a grammar (plugin/text/tool_grammar.h).
 */
#ifndef XM_PLUGIN_SERVER_TOOLS_H
#define XM_PLUGIN_SERVER_TOOLS_H

#include <yyjson.h>

#include "plugin/program_util/json_out.h"
#include "plugin/server/refusal.h"
#include "plugin/server/wish.h"
#include "plugin/text/tool_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MOST_TOOLS = 512 };

/* How an API says it. */
enum xm_tools_api { XM_TOOLS_CHAT, XM_TOOLS_RESPONSES, XM_TOOLS_MESSAGES };

/* Reads all of it into the wish, in which the tools are none where none may be called. The body
 * outlives the wish. */
bool xm_tools_read(struct xm_wish *w, enum xm_tools_api api, yyjson_val *body,
                   struct xm_refusal *r);
/* Makes the grammar of the wish, where one is needed, behind what else it says of its form. */
bool xm_tools_grammar(struct xm_wish *w, struct xm_refusal *r);
/* Adds the template's variable "tools": {"type": "function", "function": {name, description,
 * parameters}}, each. */
void xm_tools_add(const struct xm_wish *w, struct xm_json_out *variables);

#ifdef __cplusplus
}
#endif
#endif
