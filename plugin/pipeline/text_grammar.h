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

/* Makes t->constraint. XM_UNSUPPORTED: there is no tokenizer. */
enum xm_status xm_text_grammar_begin(struct xm_text *t, struct xm_error *err);
/* Tells the sampler which tokens may be chosen next. XM_INVALID: none, of `vocabulary`. */
enum xm_status xm_text_grammar_allow(struct xm_text *t, struct xm_sampler *sampler,
                                     uint64_t vocabulary, struct xm_error *err);
/* Takes a token that ends nothing, before it is shown. */
enum xm_status xm_text_grammar_take(struct xm_text *t, int32_t id, struct xm_error *err);
/* After that: *is_over, because the text matches and no token can follow. */
enum xm_status xm_text_grammar_is_over(struct xm_text *t, bool *is_over,
                                       struct xm_error *err);

#endif
