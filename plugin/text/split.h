/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to delimiters when text is cut at them. "the-final--countdown" cut at "-":
 *
 *     Removed              the final countdown
 *     Isolated             the - final - - countdown
 *     MergedWithPrevious   the- final- - countdown
 *     MergedWithNext       the -final - -countdown
 *     Contiguous           the - final -- countdown
 */
#ifndef XM_PLUGIN_TEXT_SPLIT_H
#define XM_PLUGIN_TEXT_SPLIT_H

#include "plugin/text/regex.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_split_behavior {
    XM_SPLIT_REMOVED,
    XM_SPLIT_ISOLATED,
    XM_SPLIT_MERGED_WITH_PREVIOUS,
    XM_SPLIT_MERGED_WITH_NEXT,
    XM_SPLIT_CONTIGUOUS,
    XM_SPLIT_BEHAVIOR_COUNT
};

/* Returns the behavior with this name in tokenizer.json; XM_SPLIT_BEHAVIOR_COUNT: unknown. */
enum xm_split_behavior xm_split_behavior_parse(struct xm_slice name);

/* Turns the spans of xm_regex_spans, in which is_match marks delimiters, into pieces, in place.
 * Afterwards is_match marks the spans to drop. */
void xm_split_merge(struct xm_span_list *list, enum xm_split_behavior behavior);

#ifdef __cplusplus
}
#endif
#endif
