/* SPDX-License-Identifier: Apache-2.0
 *
 * Beam search: of a prompt's continuations those that are likeliest as a whole.
 *
 * So many beams go on side by side, in groups of their own. In each step a group looks at the
 * beams/group * 2 likeliest ways to go on, best first: one that ends the text is finished, if it
 * is among the first half, the others are the next beams until there are enough. A text's score is
 *
 *     sum of log(probability of each new token) / (new tokens)^length_penalty
 *
 * the token that ends it among them; the logarithms less diversity * (times that the groups before
 * have taken the same token in this step). A group keeps as many finished texts as it has beams.
 */
#ifndef XM_PLUGIN_PIPELINE_BEAM_SEARCH_H
#define XM_PLUGIN_PIPELINE_BEAM_SEARCH_H

#include "plugin/pipeline/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When a group is over that has as many finished texts as beams: */
enum xm_beam_stop {
    XM_BEAM_EARLY,     /* at once                                                    */
    XM_BEAM_HEURISTIC, /* when its best beam, ended a token ago, was not among them   */
    XM_BEAM_NEVER      /* when it cannot come among them, however long it becomes     */
};

struct xm_beam_wish {
    size_t beams, groups;     /* > 0; of each group beams / groups           */
    size_t returned;          /* texts, at most; <= beams                    */
    uint32_t no_repeat_ngram; /* as in xm_sampling                           */
    float diversity, length_penalty;
    enum xm_beam_stop stop;
};

/* The package's tokenizer and generation, where it has them, have been read.
 * out: `returned` of them, zeroed; *n have a text, the best first. `asked`: its prompt is ids; its
 * callback is not used. The prompt's ids and times are not in the results; the clock has a token
 * for each step. */
enum xm_status
xm_beam_search(struct xm_compiled *compiled, const struct xm_package *package,
               const struct xm_generation *asked, const struct xm_beam_wish *wish,
               struct xm_generation_result *out, size_t *n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
