/* SPDX-License-Identifier: Apache-2.0
 *
 * One text being generated, as a state machine. Whoever runs the model feeds it tokens of the text
 * and hands back what comes of them:
 *
 *     xm_text_begin ──► tokens ──► the model ──► a row of logits ──► xm_text_choose ──► id
 *                         ▲                 └──► (a device that chooses) ────────────► id
 *                         │                                                             │
 *                         └────────────────────────── xm_text_take ◄────────────────────┘
 *                                                           │
 *                                                           └──► is_over, then xm_text_end
 *
 * Sampling, ids and strings that end it, its lengths, its probabilities and what of it can be shown
 * are the text's own: they do not depend on other texts that are run with it. A text knows no
 * device. Nothing is printed.
 */
#ifndef XM_PLUGIN_PIPELINE_TEXT_H
#define XM_PLUGIN_PIPELINE_TEXT_H

#include "plugin/pipeline/text_stream.h"
#include "plugin/text/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a text is made from. All that it points to must outlive the text. */
struct xm_text_source {
    /* May be NULL or have no tokenizer: then the text has ids only. Its tokenizer and generation
     * have been read, and of an answer (asked->is_answer) its chat template. */
    const struct xm_package *package;
    const struct xm_generation *asked; /* its prompt is not used */
    const struct xm_sampling *sampling;
    /* The caller's, whose random numbers continue those of its text before, or NULL inside, to be
     * made; NULL: the text has its own. */
    struct xm_sampler **sampler;
};

struct xm_text {
    struct xm_text_source from;
    struct xm_generation_result
        *out; /* the caller's: ids, text, probabilities, finish  */
    struct xm_token_list
        tokens; /* prompt and new ones: what the model is fed, in order */
    size_t n_prompt;
    uint64_t most; /* new tokens                                                   */
    bool is_over;  /* nothing is chosen any more; out->finish says why             */
    /* The rest belongs to text.c. */
    struct xm_sampler *own_sampler;
    struct xm_text_stream stream;
    struct xm_answer answer;
    struct xm_constraint *constraint; /* owned; of asked->grammar; NULL: none */
    bool has_text, goes_on;           /* goes_on: as on_piece says */
};

/* Begins the text of prompt[n]; an echoed prompt is its first piece. It is over at once where it
 * wants no tokens, or on_piece refuses the prompt. XM_INVALID: the context has no room behind the
 * prompt. Also after a failure the caller frees it. */
enum xm_status xm_text_begin(struct xm_text *t, const struct xm_text_source *from,
                             const int32_t *prompt, size_t n,
                             struct xm_generation_result *out, struct xm_error *err);
void xm_text_free(struct xm_text *t);

/* Makes its sampler, which sees the prompt. Before the first token is chosen. */
enum xm_status xm_text_begin_sampling(struct xm_text *t, uint64_t vocabulary,
                                      struct xm_error *err);
/* Chooses from the logits behind the last token, row[vocabulary], which are a distribution, and
 * notes the probabilities that are asked for. A dry run has no logits: *id is 0, and never ends a
 * text. Several threads may choose at once for texts that share neither sampler nor scratch. It
 * writes to the text, its sampler and `scratch` only: the caller keeps the clock. */
enum xm_status xm_text_choose(struct xm_text *t, struct xm_sampler_scratch *scratch,
                              const float *row, uint64_t vocabulary, int32_t *id,
                              struct xm_error *err);
/* Takes a chosen id: appends it, passes on the text that is certain, and finds whether it was the
 * last. An id that ends the text is no token of it. */
enum xm_status xm_text_take(struct xm_text *t, int32_t id, struct xm_error *err);
/* Passes on what was held back. After the last token, after a failure, and
 * when it is given up: who shows a text has to end it. */
enum xm_status xm_text_end(struct xm_text *t, struct xm_error *err);

/* New tokens that may still be chosen. */
uint64_t xm_text_left(const struct xm_text *t);

/* ---- for a device that chooses in place of xm_text_choose ---- */

/* How it may choose the next token; false: only xm_text_choose can. */
bool xm_text_on_device(const struct xm_text *t, struct xm_token_choice *how,
                       struct xm_seen_tokens *seen);
/* The same of the last tokens of a long text, before the first is chosen. */
bool xm_text_will_be_on_device(const struct xm_text *t, uint64_t vocabulary,
                               struct xm_token_choice *how);
/* It has chosen the id that xm_text_take gets. */
void xm_text_chosen_on_device(struct xm_text *t);

/* ---- for a search that weighs texts against each other (beam_search.h) ---- */

/* Such a text is no answer of a chat and has no sampler: xm_text_begin_sampling and xm_text_choose
 * are not called. */
/* A copy that continues on its own. `out`: its zeroed result. Also after a failure the caller frees
 * both. */
enum xm_status xm_text_fork(const struct xm_text *t, struct xm_text *copy,
                            struct xm_generation_result *out, struct xm_error *err);
/* out[vocabulary]: the log-probabilities of the next token by row[vocabulary] of logits; -infinity
 * for tokens that the text may not have: barred ones, and what its grammar does not allow. */
enum xm_status xm_text_weigh(struct xm_text *t, const float *row, uint64_t vocabulary,
                             float *out, struct xm_error *err);
/* xm_text_take of a token that the search has chosen from the row, with its probabilities where
 * they are asked for. Of a dry run they are 0, and the row is not read. */
enum xm_status xm_text_take_from(struct xm_text *t, const float *row, uint64_t vocabulary,
                                 int32_t id, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
