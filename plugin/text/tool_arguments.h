/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of a tool's call as a grammar, by the JSON Schema that the tool declares:
 *
 *     JSON         {"city": "Rome", "days": 3}
 *     PARAMETERS   <parameter=city>⏎Rome⏎</parameter>⏎<parameter=days>⏎3⏎</parameter>⏎
 *     BRACES       {city:<|"|>Rome<|"|>,days:3}
 *
 * In PARAMETERS and BRACES strings stand as they are. Those with a pattern or a format have no '<',
 * which begins what ends them; lengths alone are not looked at, and in PARAMETERS nothing of an
 * argument that may be something else than a string. An argument of PARAMETERS that can be no
 * string is JSON, with all keywords of JSON. Of others schemas that refer to themselves are
 * refused, and so is each keyword that restricts instances and has no grammar, by its name.
 */
#ifndef XM_PLUGIN_TEXT_TOOL_ARGUMENTS_H
#define XM_PLUGIN_TEXT_TOOL_ARGUMENTS_H

#include "plugin/text/grammar_parts.h"
#include "plugin/text/tool_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_argument_form { XM_ARGUMENTS_JSON, XM_ARGUMENTS_PARAMETERS, XM_ARGUMENTS_BRACES };

/* Around strings of BRACES. */
#define XM_BRACES_QUOTE "<|\"|>"
/* Around arguments of PARAMETERS. */
#define XM_PARAMETER     "<parameter="
#define XM_PARAMETER_END "</parameter>"

/* Adds the texts of the tool's arguments. Properties that an object's schema declares are all that
 * it has, but for those of its additionalProperties; an object without "properties" may have any.
 * A tool without a schema has no arguments. by_schema = false: any arguments. XM_INVALID,
 * XM_UNSUPPORTED: the sentence names the tool and the keyword. */
enum xm_status xm_tool_arguments(struct xm_grammar_tree *t, enum xm_argument_form form,
                                 const struct xm_tool *tool, bool by_schema,
                                 uint32_t *node, struct xm_error *err);
/* The types (json_schema_parts.h) that the argument may have; all where that is not declared. NULL:
 * the tool is not known. *left: the steps that may still be taken to find out, for all arguments of
 * a call XM_TYPES_STEPS at first; without any all types are possible. */
enum { XM_TYPES_STEPS = 1 << 20 };
unsigned xm_tool_argument_types(const struct xm_tool *tool, struct xm_slice key,
                                unsigned *left);

#ifdef __cplusplus
}
#endif
#endif
