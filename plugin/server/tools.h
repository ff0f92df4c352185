/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools of a request, and the rules for calling them:
 *
 *     tools                  functions with a name and a JSON Schema of their arguments
 *     tool_choice            auto, none, any call (required, any), or a call of one function
 *     parallel_tool_calls    false: at most one call (Anthropic: disable_parallel_tool_use)
 *
 * The chat template describes the tools to the model. A grammar (plugin/text/tool_grammar.h)
 * enforces calls that are required, strict or limited in number.
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

/* The API that defines the form of tools. */
enum xm_tools_api { XM_TOOLS_CHAT, XM_TOOLS_RESPONSES, XM_TOOLS_MESSAGES };

/* Reads the tools and rules into the wish; without any tools if none may be called. The body must
 * outlive the wish. */
bool xm_tools_read(struct xm_wish *w, enum xm_tools_api api, yyjson_val *body,
                   struct xm_refusal *r);
/* Makes the wish's grammar, if calls need one. Call it after the wish's form was read. */
bool xm_tools_grammar(struct xm_wish *w, struct xm_refusal *r);
/* Adds the template's variable "tools", a list of {"type": "function", "function": {name,
 * description, parameters}}. */
void xm_tools_add(const struct xm_wish *w, struct xm_json_out *variables);

#ifdef __cplusplus
}
#endif
#endif
