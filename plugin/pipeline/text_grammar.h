/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a text whose grammar is asked for (struct xm_generation): for text.c only.
 *
 * The grammar begins where the text does. In an answer, thoughts and headers are free, except that
 * no id may end the text there; before the first token of the text the model may begin to think.
 *
 * A grammar that has marks (grammar_has_marks) is of all tokens but thoughts. A thought ends with
 * its mark, or with one that the grammar names.
 */
#ifndef XM_PLUGIN_PIPELINE_TEXT_GRAMMAR_H
#define XM_PLUGIN_PIPELINE_TEXT_GRAMMAR_H

#include "plugin/pipeline/text.h"
#include "plugin/text/constraint.h"

/* Makes t->constraint. XM_UNSUPPORTED: there is no tokenizer. */
enum xm_status xm_text_grammar_begin(struct xm_text *t, struct xm_error *err);
enum { XM_LIMIT_LISTS = XM_BARRED_LISTS + 1 };
/* Which tokens may be chosen next; valid until the text takes one. It is not copied: lists are
 * inside. */
struct xm_text_limits {
    struct xm_token_bits allowed; /* words NULL: all but the barred ones           */
    struct xm_end_ids barred[XM_LIMIT_LISTS];
    int32_t marks[XM_MAX_ANSWER_MARKS]; /* of the last list */
    bool is_stuck; /* by a grammar: none of the vocabulary may be chosen */
};
enum xm_status xm_text_grammar_limit(struct xm_text *t, uint64_t vocabulary,
                                     struct xm_text_limits *out, struct xm_error *err);
/* Takes a token that ends nothing, before it is shown. */
enum xm_status xm_text_grammar_take(struct xm_text *t, int32_t id, struct xm_error *err);
/* After that: *is_over, because the text matches and no token can follow. */
enum xm_status xm_text_grammar_is_over(struct xm_text *t, bool *is_over,
                                       struct xm_error *err);

#endif
