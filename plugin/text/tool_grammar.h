/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the grammar of answers that call tools, in the model's own syntax (tool_calls.h), with
 * arguments that match the tools' schemas:
 *
 *     must_call    ⏎⏎<tool_call>⏎{"name": "f", "arguments": {"city": "Rome"}}⏎</tool_call>
 *     else         any text, optionally followed by calls
 *
 * The marks around calls are named tokens of the grammar. A thought before the answer is not part
 * of the grammar, which is for texts whose generation sets `grammar_has_marks`
 * (pipeline/generation.h).
 */
#ifndef XM_PLUGIN_TEXT_TOOL_GRAMMAR_H
#define XM_PLUGIN_TEXT_TOOL_GRAMMAR_H

#include "plugin/text/answer.h"
#include "plugin/text/grammar.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_tool_choice {
    struct xm_tools tools; /* the tools that may be called; n > 0 */
    bool must_call;        /* the answer consists of calls whose arguments match */
    bool one;              /* at most one call */
};

/* Makes the grammar. XM_UNSUPPORTED: the model's syntax of calls is not known, or a schema has no
 * grammar. XM_INVALID: a schema allows nothing. The error message says which, and *which (may be
 * NULL) is the tool of that schema; NULL: no tool is the cause. Free *out with xm_grammar_free; it
 * keeps no reference to the tools. */
enum xm_status xm_tool_grammar(const struct xm_tool_choice *choice,
                               const struct xm_tokenizer *tokenizer,
                               const struct xm_chat_template *tmpl,
                               struct xm_grammar **out, const struct xm_tool **which,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
