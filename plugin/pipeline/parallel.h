/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of several prompts, run together: so many at a time, the next as soon as a place is free.
 *
 *     prompts ──► places ──► one run of all of them ──► a row of logits each ──► samplers ──► texts
 *                   ▲                                                               │
 *                   └───────────────────────────────────────────────────────────────┘
 *
 * Each text is what a session would make of its prompt alone. What the cache still has of a
 * prompt's beginning is taken over; of one prompt that is continued several times the others are
 * forks. Prompts are read in pieces, at most XM_UBATCH rows in a run; texts that have been read go
 * on by a token in each. Where the cache is full the newest text waits for another to end: its
 * pages are given up, and computed anew later, as far as the cache has lost them. Nothing is
 * printed. No chats: thoughts are text as the rest.
 *
 * A failure of one text ends that text alone, as XM_FINISH_FAILED with status and sentence: its
 * prompt is refused, empty or as long as the context, its logits are not finite, or it has no room
 * in the cache alone. A failure of the device ends all texts.
 *
 * Used by one thread at a time; its request is cancelled from any, and from a signal's handler.
 */
#ifndef XM_PLUGIN_PIPELINE_PARALLEL_H
#define XM_PLUGIN_PIPELINE_PARALLEL_H

#include "plugin/pipeline/session.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_parallel;

/* `compiled` with sampled_logits; the package, which outlives it, may be NULL, or have no
 * tokenizer: then there are ids only. What is used of it, tokenizer and generation, has been read.
 * XM_UNSUPPORTED: the device, or this model, has no sequences. */
enum xm_status xm_parallel_create(struct xm_compiled *compiled,
                                  struct xm_package *package, struct xm_parallel **out,
                                  struct xm_error *err);
void xm_parallel_destroy(struct xm_parallel *p); /* NULL is allowed */

/* To cancel it, and to ask what it cost; it has no other functions. */
struct xm_infer *xm_parallel_request(struct xm_parallel *p);

struct xm_parallel_run {
    const struct xm_token_list *prompts; /* the caller's; ids below the vocabulary      */
    size_t n_prompts;
    /* [n_prompts] XM_OK, or why the text of this prompt fails before it begins; NULL: all XM_OK */
    const struct xm_error *refused;
    size_t n_texts; /* of one prompt as many as wanted, else n_prompts     */
    size_t places;  /* texts at a time; > 0                                */
    /* of all texts; its prompt and its callback are not used */
    struct xm_generation each;
    struct xm_sampling sampling; /* text i has seed + i                                */
    /* Called once for each text, when it is complete; NULL: nobody looks. */
    void (*on_text)(size_t text, void *ctx);
    /* Called behind each run on the device, whether or not it had tokens of prompts; NULL: nobody
     * looks. */
    void (*on_run)(bool has_prompts, void *ctx);
    void *ctx; /* of both */
};

/* out: n_texts of them, zeroed, without prompts and times; xm_generation_result_free each
 * afterwards, also after a failure, before which those that are complete have been told. Texts of a
 * cancelled run end where they were, those that had not begun are empty; the call returns XM_OK.
 * A run with failed texts still returns XM_OK.
 * *times: of steps that have tokens of prompts in them, and of the others; a step ends when its
 * tokens have been chosen and its texts told. */
enum xm_status xm_parallel_generate(struct xm_parallel *p,
                                    const struct xm_parallel_run *run,
                                    struct xm_generation_result *out,
                                    struct xm_generation_times *times,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
