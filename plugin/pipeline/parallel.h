/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of several prompts that are all there at once, or several texts of one prompt: jobs of a
 * scheduler (scheduler.h), at most `slots` at a time, in the order of their prompts. Answers of
 * chats are not parsed: thoughts are part of the text.
 *
 * A failure of one text ends that text alone, as XM_FINISH_FAILED with status and sentence. A
 * failure of the device ends all texts.
 *
 * `compiled` of the scheduler has sampled_logits. The scheduler has no other jobs meanwhile; its
 * request is cancelled from any thread, and from a signal's handler.
 */
#ifndef XM_PLUGIN_PIPELINE_PARALLEL_H
#define XM_PLUGIN_PIPELINE_PARALLEL_H

#include "plugin/pipeline/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_parallel_run {
    const struct xm_token_list *prompts; /* the caller's; ids below the vocabulary      */
    size_t n_prompts;
    /* [n_prompts] XM_OK, or why the text of this prompt fails before it begins; NULL: all XM_OK */
    const struct xm_error *refused;
    size_t n_texts; /* of one prompt as many as wanted, else n_prompts     */
    size_t slots;   /* texts at a time; > 0                                */
    /* of all texts; its prompt and its callback are not used */
    struct xm_generation each;
    struct xm_sampling sampling; /* text i has seed + i; its lists stay the caller's   */
    /* Called once for each text, when it is complete; NULL: not called. */
    void (*on_text)(size_t text, void *ctx);
    /* Called after each run on the device; has_prompts: the run had tokens of prompts. NULL: not
     * called. */
    void (*on_run)(bool has_prompts, void *ctx);
    void *ctx; /* of both */
};

/* out: [n_texts] zeroed results, which get neither prompts nor times. The caller frees each with
 * xm_generation_result_free, also after a failure; on_text has been called for those complete. A
 * cancelled run returns XM_OK: its texts end where they were, and texts not begun are empty. A run
 * with failed texts returns XM_OK.
 * *times: prompt_s is of steps with tokens of prompts, decode_s of the others; a step ends when its
 * tokens have been chosen and on_text has returned. */
enum xm_status xm_parallel_generate(struct xm_scheduler *scheduler,
                                    const struct xm_parallel_run *run,
                                    struct xm_generation_result *out,
                                    struct xm_generation_times *times,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
