/* SPDX-License-Identifier: Apache-2.0
 *
 * One text being generated, as a state machine. The code that runs the model feeds it the text's
 * tokens and returns the chosen ones:
 *
 *     xm_text_begin ──► tokens ──► the model ──► a row of logits ──► xm_text_choose ──► id
 *                         ▲                 └──► (a device that chooses) ────────────► id
 *                         │                                                             │
 *                         └────────────────────────── xm_text_take ◄────────────────────┘
 *                                                           │
 *                                                           └──► is_over, then xm_text_end
 *
 * A text owns its sampling, end tokens, stop strings, limits and probabilities, and finds which of
 * its text can be shown. These do not depend on other texts that run with it, nor on the device. It
 * prints nothing.
 */
#ifndef XM_PLUGIN_PIPELINE_TEXT_H
#define XM_PLUGIN_PIPELINE_TEXT_H

#include "plugin/pipeline/text_stream.h"
#include "plugin/text/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The inputs of a text; everything they point to must outlive the text. */
struct xm_text_source {
    /* May be NULL or have no tokenizer: then the text has ids only. Its tokenizer and generation
     * have been read, and its chat template for an answer (asked->is_answer). */
    const struct xm_package *package;
    const struct xm_generation *asked; /* its prompt is not used */
    const struct xm_sampling *sampling;
    /* A sampler of the caller that this text continues, so that random numbers do not repeat; it
     * points to NULL before the first text creates it. NULL: the text has its own sampler. */
    struct xm_sampler **sampler;
};

struct xm_text {
    struct xm_text_source from;
    /* owned by the caller: ids, text, probabilities, finish */
    struct xm_generation_result *out;
    /* tokens to feed to the model, in order: prompt and generated ones */
    struct xm_token_list tokens;
    size_t n_prompt;
    uint64_t most; /* maximum number of generated tokens */
    bool is_over;  /* no more tokens are chosen; out->finish says why */
    /* The following members belong to text.c. */
    struct xm_sampler *own_sampler;
    struct xm_text_stream stream;
    struct xm_answer answer;
    struct xm_constraint *constraint; /* owned; for asked->grammar; NULL: none */
    bool has_text, goes_on;           /* goes_on: the last result of on_piece */
};

/* Begins the text after prompt[n]; an echoed prompt is its first piece. It is over at once if it
 * may have no tokens, or if on_piece returns false for the prompt. XM_INVALID: the context has no
 * room after the prompt. The caller frees the text, also after a failure. */
enum xm_status xm_text_begin(struct xm_text *t, const struct xm_text_source *from,
                             const int32_t *prompt, size_t n,
                             struct xm_generation_result *out, struct xm_error *err);
void xm_text_free(struct xm_text *t);

/* Creates the sampler and passes it the prompt. Call it before the first token is chosen. */
enum xm_status xm_text_begin_sampling(struct xm_text *t, uint64_t vocabulary,
                                      struct xm_error *err);
/* Chooses a token from the logits after the last token, row[vocabulary], which have neither NaN nor
 * +infinity, and stores the requested probabilities. A dry run has no logits: *id is 0, which never
 * ends a text. Threads may choose for different texts at the same time, if these share neither
 * sampler nor scratch. Writes only to the text, its sampler and `scratch`: the caller updates the
 * clock. */
enum xm_status xm_text_choose(struct xm_text *t, struct xm_sampler_scratch *scratch,
                              const float *row, uint64_t vocabulary, int32_t *id,
                              struct xm_error *err);
/* Appends a chosen id, passes on the text that can no longer change, and sets is_over if it was the
 * last token. An end token is not appended. */
enum xm_status xm_text_take(struct xm_text *t, int32_t id, struct xm_error *err);
/* Passes on text that was held back. Call it after the last token, after a failure, and if the text
 * is abandoned, so that all of its text is shown. */
enum xm_status xm_text_end(struct xm_text *t, struct xm_error *err);

/* Returns how many tokens may still be generated. */
uint64_t xm_text_left(const struct xm_text *t);

/* ---- devices that choose instead of xm_text_choose ---- */

/* Returns how the device may choose the next token; false: only xm_text_choose can. */
bool xm_text_on_device(const struct xm_text *t, struct xm_token_choice *how,
                       struct xm_seen_tokens *seen);
/* As xm_text_on_device, for the last tokens of a text of maximum length, before the first token is
 * chosen. */
bool xm_text_will_be_on_device(const struct xm_text *t, uint64_t vocabulary,
                               struct xm_token_choice *how);
/* Tells the sampler that the device has chosen the id that xm_text_take gets. */
void xm_text_chosen_on_device(struct xm_text *t);

/* ---- beam search (beam_search.h) ---- */

/* Such a text is not an answer of a chat and has no sampler: xm_text_begin_sampling and
 * xm_text_choose are not called. */
/* Makes a copy that continues independently. `out`: the copy's zeroed result. The caller frees
 * both, also after a failure. */
enum xm_status xm_text_fork(const struct xm_text *t, struct xm_text *copy,
                            struct xm_generation_result *out, struct xm_error *err);
/* out[vocabulary]: the log-probabilities of the next token from row[vocabulary] of logits;
 * -infinity for barred tokens and those that the grammar does not allow. */
enum xm_status xm_text_weigh(struct xm_text *t, const float *row, uint64_t vocabulary,
                             float *out, struct xm_error *err);
/* As xm_text_take, for a token that the search has chosen from the row; stores its probabilities if
 * requested. In a dry run they are 0, and the row is not read. */
enum xm_status xm_text_take_from(struct xm_text *t, const float *row, uint64_t vocabulary,
                                 int32_t id, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
