/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses calls of tools, as models write them:
 *
 *     JSON    {"name": "f", "arguments": {"city": "Rome"}}                     Qwen 3, Hermes
 *             <function=f><parameter=city>Rome</parameter></function>          Qwen3-Coder
 *     NAMED   {"city": "Rome"}, and the header of the message has the name     gpt-oss
 *     BRACES  call:f{city:<|"|>Rome<|"|>,days:3}                               Gemma 4
 *
 * answer.h finds where a call begins and the marks around it. A text that does not have the exact
 * form is not a call: nothing is guessed. The one exception are values of Qwen3-Coder, which have
 * no types in that syntax: a value that is JSON of a type that the tool declares for the argument
 * is taken as JSON, any other as a string. If no type is declared, JSON of any type but string is
 * taken as JSON.
 *
 * If the length limit ended the answer within a call, the call is returned as far as it was
 * written, with is_cut set.
 */
#ifndef XM_PLUGIN_TEXT_TOOL_CALLS_H
#define XM_PLUGIN_TEXT_TOOL_CALLS_H

#include <yyjson.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_call_form { XM_CALL_NONE, XM_CALL_JSON, XM_CALL_NAMED, XM_CALL_BRACES };

enum {
    XM_LONGEST_CALL = 1 << 20, /* bytes; a longer text is not a call */
    XM_LONGEST_TOOL_NAME = 256,
    XM_DEEPEST_CALL = 64, /* nesting depth of objects and lists */
    XM_MOST_CALLS = 128   /* in one answer; later ones are text */
};

/* A tool that may be called. The caller owns its members. */
struct xm_tool {
    struct xm_slice name;
    yyjson_val *parameters; /* JSON Schema of the arguments; NULL: none */
    /* Arguments must match the schema even if calls are optional (tool_grammar.h). */
    bool strict;
};
struct xm_tools {
    const struct xm_tool *list;
    size_t n;
};

struct xm_tool_call {
    char *name; /* owned */
    /* Owned; a JSON object in one line. Numbers are as they were written. */
    char *arguments;
    /* The length limit ended the text: `arguments` is the beginning of a JSON object, as far as it
     * was written; "": nothing of it was. */
    bool is_cut;
};

/* Zero-initialise to use. */
struct xm_tool_calls {
    struct xm_tool_call *list; /* owned */
    size_t n, capacity;
};
void xm_tool_calls_free(struct xm_tool_calls *calls);

/* Parses `text`, a complete call, and appends it. `name`: the tool's name, only of NAMED. tools:
 * the tools that may be called; NULL: not known. XM_INVALID: it is not a call; the error message
 * says why. On failure `calls` is unchanged. */
enum xm_status xm_tool_calls_parse(struct xm_tool_calls *calls, enum xm_call_form form,
                                   struct xm_slice name, struct xm_slice text,
                                   const struct xm_tools *tools, struct xm_error *err);
/* Parses `text`, a call that ends before it is complete, and appends the part that there is, with
 * is_cut set. XM_NOT_FOUND: a call may have begun, but its name is incomplete. */
enum xm_status xm_tool_calls_parse_cut(struct xm_tool_calls *calls,
                                       enum xm_call_form form, struct xm_slice name,
                                       struct xm_slice text, const struct xm_tools *tools,
                                       struct xm_error *err);
/* Returns whether calls can contain the name: it has no blanks, quotes, brackets or control
 * characters. */
bool xm_tool_name_is_good(struct xm_slice name);
/* Appends a copy of a call. */
enum xm_status xm_tool_calls_add(struct xm_tool_calls *calls,
                                 const struct xm_tool_call *call, struct xm_error *err);
/* Appends {"name": …, "arguments": …} as JSON text; of a call with is_cut, its beginning. */
void xm_tool_call_add_json(const struct xm_tool_call *call, struct xm_strbuf *out);
/* Closes the arguments of a call with is_cut: keeps the complete members and makes them an
 * object. */
void xm_tool_call_close(struct xm_strbuf *arguments);

#ifdef __cplusplus
}
#endif
#endif
