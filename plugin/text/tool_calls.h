/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of tools, as models write them:
 *
 *     JSON    {"name": "f", "arguments": {"city": "Rome"}}                     Qwen 3, Hermes
 *             <function=f><parameter=city>Rome</parameter></function>          Qwen3-Coder
 *     NAMED   {"city": "Rome"}, and the header of the message has the name     gpt-oss
 *     BRACES  call:f{city:<|"|>Rome<|"|>,days:3}                               Gemma 4
 *
 * What stands around a call, and where it begins, is the business of answer.h. A call that is not
 * of its form is none: nothing is guessed, but for the values of Qwen3-Coder, which have no types
 * there: one that is JSON of a type that the tool declares for it is taken as such, any other is a
 * string. Where no type is declared, all types but strings are.
 *
 * A last call that the length limit cut is returned as far as it came, with is_cut set.
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
    XM_LONGEST_CALL = 1 << 20, /* bytes; what is longer is none         */
    XM_LONGEST_TOOL_NAME = 256,
    XM_DEEPEST_CALL = 64, /* objects and lists in each other       */
    XM_MOST_CALLS = 128   /* of an answer; those behind are text   */
};

/* A tool that may be called. All of it is the caller's. */
struct xm_tool {
    struct xm_slice name;
    yyjson_val *parameters; /* JSON Schema of the arguments; NULL: it has none */
    bool strict; /* arguments match the schema, where calls are free (tool_grammar.h) */
};
struct xm_tools {
    const struct xm_tool *list;
    size_t n;
};

struct xm_tool_call {
    char *name; /* owned */
    /* Owned; an object as JSON text, in one line; numbers as they were written. */
    char *arguments;
    /* The text's length ended it: the arguments are the beginning of an object's JSON text, as far
     * as they came; "": none did. */
    bool is_cut;
};

/* Zero-initialise to use. */
struct xm_tool_calls {
    struct xm_tool_call *list; /* owned */
    size_t n, capacity;
};
void xm_tool_calls_free(struct xm_tool_calls *calls);

/* Appends the call that `text` is, whole; `name`: of NAMED; tools: what there is to call, NULL: not
 * known. XM_INVALID: it is none; the sentence says why. On failure `calls` is as before. */
enum xm_status xm_tool_calls_parse(struct xm_tool_calls *calls, enum xm_call_form form,
                                   struct xm_slice name, struct xm_slice text,
                                   const struct xm_tools *tools, struct xm_error *err);
/* The same for a text that broke off before the call was whole; the call that is appended is_cut.
 * XM_NOT_FOUND: a call may have begun, of which there is no name yet. */
enum xm_status xm_tool_calls_parse_cut(struct xm_tool_calls *calls,
                                       enum xm_call_form form, struct xm_slice name,
                                       struct xm_slice text, const struct xm_tools *tools,
                                       struct xm_error *err);
/* Whether a call can name it: no blanks, quotes, brackets or control characters. */
bool xm_tool_name_is_good(struct xm_slice name);
/* Appends a copy of a call. */
enum xm_status xm_tool_calls_add(struct xm_tool_calls *calls,
                                 const struct xm_tool_call *call, struct xm_error *err);
/* Appends {"name": …, "arguments": …} as JSON text; of a cut one, its beginning. */
void xm_tool_call_add_json(const struct xm_tool_call *call, struct xm_strbuf *out);
/* Of a cut call's arguments, leaves the members that are whole, as an object. */
void xm_tool_call_close(struct xm_strbuf *arguments);

#ifdef __cplusplus
}
#endif
#endif
