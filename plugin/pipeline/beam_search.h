/* SPDX-License-Identifier: Apache-2.0
 *
 * Beam search: finds the continuations of a prompt with the highest scores as whole texts.
 *
 * The beams are divided into groups; each group is searched on its own. In each step a group takes
 * its 2 * beams/groups likeliest continuations, best first. A continuation that ends the text is
 * added to the group's finished texts if it is in the first half, and is dropped otherwise. The
 * others become the next beams, beams/groups of them. The score of a text is
 *
 *     sum of log(probability of each new token) / (new tokens)^length_penalty
 *
 * where the token that ends the text counts as new. From each logarithm, diversity * (number of
 * times that earlier groups have chosen the same token in this step) is subtracted. A group keeps
 * its best finished texts, at most as many as it has beams.
 */
#ifndef XM_PLUGIN_PIPELINE_BEAM_SEARCH_H
#define XM_PLUGIN_PIPELINE_BEAM_SEARCH_H

#include "plugin/pipeline/generation.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When a group stops, once it has as many finished texts as beams. */
enum xm_beam_stop {
    XM_BEAM_EARLY, /* at once                                                    */
    /* when no finished text scores below the best live beam, whose score counts one token less */
    XM_BEAM_HEURISTIC,
    /* when the best live beam can no longer enter the finished texts, however long it becomes */
    XM_BEAM_NEVER
};

struct xm_beam_wish {
    size_t beams, groups;     /* > 0; a group has beams / groups beams */
    size_t returned;          /* maximum number of texts; <= beams */
    uint32_t no_repeat_ngram; /* as in xm_sampling                           */
    float diversity, length_penalty;
    enum xm_beam_stop stop;
};

/* Searches for the best texts.
 *
 * `asked` gives the prompt as ids; its callback is not called. The caller has read the package's
 * tokenizer and generation_config, if there are any.
 *
 * out: [wish->returned] results, zeroed by the caller, who frees each. The first *n hold a text,
 * best first; the others stay zero, also after a failure. The results have neither the prompt's ids
 * nor times; the clock of `asked` records one token for each step of the search. */
enum xm_status
xm_beam_search(struct xm_compiled *compiled, const struct xm_package *package,
               const struct xm_generation *asked, const struct xm_beam_wish *wish,
               struct xm_generation_result *out, size_t *n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
