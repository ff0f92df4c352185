/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers that call tools, as a grammar of the model's own syntax (tool_calls.h), whose
 * arguments match the tools' schemas:
 *
 *     must_call    ⏎⏎<tool_call>⏎{"name": "f", "arguments": {"city": "Rome"}}⏎</tool_call>
 *     else         any text, and calls behind it or not
 *
 * The grammar names the marks around calls as tokens. What is thought before is no part of it: it
 * is for texts whose generation says `grammar_has_marks` (pipeline/generation.h).
 */
#ifndef XM_PLUGIN_TEXT_TOOL_GRAMMAR_H
#define XM_PLUGIN_TEXT_TOOL_GRAMMAR_H

#include "plugin/text/answer.h"
#include "plugin/text/grammar.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_tool_choice {
    struct xm_tools tools; /* that may be called; n > 0 */
    bool must_call;        /* the answer is calls, all of which match schemas */
    bool one;              /* call at most */
};

/* XM_UNSUPPORTED: the model has no syntax of calls that is known, or a schema no grammar.
 * XM_INVALID: a schema admits nothing. The sentence says which, and *which (NULL allowed) is the
 * schema's tool; NULL: none is to blame. Free *out with xm_grammar_free; it keeps no reference to
 * the tools. */
enum xm_status xm_tool_grammar(const struct xm_tool_choice *choice,
                               const struct xm_tokenizer *tokenizer,
                               const struct xm_chat_template *tmpl,
                               struct xm_grammar **out, const struct xm_tool **which,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
