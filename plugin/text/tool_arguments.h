/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the grammar of the arguments of a tool's call from the JSON Schema that the tool declares:
 *
 *     JSON         {"city": "Rome", "days": 3}
 *     PARAMETERS   <parameter=city>⏎Rome⏎</parameter>⏎<parameter=days>⏎3⏎</parameter>⏎
 *     BRACES       {city:<|"|>Rome<|"|>,days:3}
 *
 * In PARAMETERS and BRACES strings are not escaped. A string with a pattern or a format must not
 * contain '<', because '<' begins the mark that ends the string. minLength and maxLength without a
 * pattern or a format are ignored; so are, in PARAMETERS, all keywords of an argument that may be a
 * string or another type. An argument of PARAMETERS that cannot be a string is JSON, with all
 * keywords of JSON Schema. For the other arguments, schemas that refer to themselves are refused,
 * and so is each keyword that restricts instances and has no grammar; the message names the
 * keyword.
 */
#ifndef XM_PLUGIN_TEXT_TOOL_ARGUMENTS_H
#define XM_PLUGIN_TEXT_TOOL_ARGUMENTS_H

#include "plugin/text/grammar_parts.h"
#include "plugin/text/tool_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_argument_form { XM_ARGUMENTS_JSON, XM_ARGUMENTS_PARAMETERS, XM_ARGUMENTS_BRACES };

/* The mark around strings of BRACES. */
#define XM_BRACES_QUOTE "<|\"|>"
/* The marks around arguments of PARAMETERS. */
#define XM_PARAMETER     "<parameter="
#define XM_PARAMETER_END "</parameter>"

/* Sets *node to the texts of the tool's arguments. An object has only the properties that its
 * schema declares, and those that additionalProperties allows; an object without "properties" may
 * have any. A tool without a schema has no arguments. by_schema = false: any arguments. XM_INVALID,
 * XM_UNSUPPORTED: the error message names the tool and the keyword. */
enum xm_status xm_tool_arguments(struct xm_grammar_tree *t, enum xm_argument_form form,
                                 const struct xm_tool *tool, bool by_schema,
                                 uint32_t *node, struct xm_error *err);
/* Returns the types (json_schema_parts.h) that the argument `key` may have; all types if they are
 * not declared or `tool` is NULL (unknown). *left is the number of search steps left,
 * XM_TYPES_STEPS at the beginning of a call for all its arguments; when none are left, all types
 * are returned. */
enum { XM_TYPES_STEPS = 1 << 20 };
unsigned xm_tool_argument_types(const struct xm_tool *tool, struct xm_slice key,
                                unsigned *left);

#ifdef __cplusplus
}
#endif
#endif
