/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside text.c: texts with a grammar (struct xm_generation).
 *
 * The grammar applies from the start of the text. In an answer, thoughts and headers are free,
 * except that no id may end the text there; before the first token of the text the model may begin
 * to think.
 *
 * A grammar with marks (grammar_has_marks) covers all tokens but thoughts. A thought ends with its
 * own mark, or with a mark that the grammar names.
 */
#ifndef XM_PLUGIN_PIPELINE_TEXT_GRAMMAR_H
#define XM_PLUGIN_PIPELINE_TEXT_GRAMMAR_H

#include "plugin/pipeline/text.h"
#include "plugin/text/constraint.h"

/* Creates t->constraint. XM_UNSUPPORTED: there is no tokenizer. */
enum xm_status xm_text_grammar_begin(struct xm_text *t, struct xm_error *err);
enum { XM_LIMIT_LISTS = XM_BARRED_LISTS + 1 };
/* The tokens that may be chosen next; valid until the text takes one. Do not copy it: its lists
 * point into it. */
struct xm_text_limits {
    struct xm_token_bits allowed; /* words NULL: all except the barred ones */
    struct xm_end_ids barred[XM_LIMIT_LISTS];
    int32_t marks[XM_MAX_ANSWER_MARKS]; /* memory of the last list */
    bool is_stuck; /* the grammar allows no token of the vocabulary */
};
enum xm_status xm_text_grammar_limit(struct xm_text *t, uint64_t vocabulary,
                                     struct xm_text_limits *out, struct xm_error *err);
/* Advances the grammar by a token that does not end the text. Call it before the token is shown. */
enum xm_status xm_text_grammar_take(struct xm_text *t, int32_t id, struct xm_error *err);
/* Call it afterwards: *is_over: the text matches the grammar and no token can follow. */
enum xm_status xm_text_grammar_is_over(struct xm_text *t, bool *is_over,
                                       struct xm_error *err);

#endif
