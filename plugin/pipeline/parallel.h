/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates texts of several prompts that are known from the start, or several texts of one prompt.
 * The texts are jobs of a scheduler (scheduler.h), at most `slots` at a time, in the order of their
 * prompts. Answers of chats are not parsed: thoughts are part of the text.
 *
 * The failure of a text ends only that text, as XM_FINISH_FAILED with status and sentence. A
 * failure of the device ends all texts.
 *
 * The scheduler's model was compiled with sampled_logits. The scheduler must have no other jobs
 * during the run. Its request may be cancelled from any thread, and from a signal handler.
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
    size_t n_texts; /* with one prompt, the number of its texts; else n_prompts */
    size_t slots;   /* maximum number of texts that run at a time; > 0 */
    /* settings of all texts; its prompt and callback are not used */
    struct xm_generation each;
    struct xm_sampling sampling; /* text i has seed + i; the caller owns the lists */
    /* Called once for each text, when it is complete; NULL: not called. */
    void (*on_text)(size_t text, void *ctx);
    /* Called after each run on the device; has_prompts: the run had tokens of prompts. NULL: not
     * called. */
    void (*on_run)(bool has_prompts, void *ctx);
    void *ctx; /* argument of on_text and on_run */
};

/* out: [n_texts] zeroed results; they get neither prompts nor times. The caller frees each with
 * xm_generation_result_free, also after a failure; on_text has been called for complete ones.
 * Returns XM_OK also after a cancel, which ends all texts with the tokens so far, and if some texts
 * failed.
 * *times: prompt_s is the time of steps with tokens of prompts, decode_s that of the other steps. A
 * step includes choosing its tokens and calls of on_text. */
enum xm_status xm_parallel_generate(struct xm_scheduler *scheduler,
                                    const struct xm_parallel_run *run,
                                    struct xm_generation_result *out,
                                    struct xm_generation_times *times,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
