/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/split.h"

static const char *const names[XM_SPLIT_BEHAVIOR_COUNT] = {
    /* clang-format off */
    [XM_SPLIT_REMOVED]              = "Removed",
    [XM_SPLIT_ISOLATED]             = "Isolated",
    [XM_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
    [XM_SPLIT_MERGED_WITH_NEXT]     = "MergedWithNext",
    [XM_SPLIT_CONTIGUOUS]           = "Contiguous",
    /* clang-format on */
};

enum xm_split_behavior
xm_split_behavior_parse(struct xm_slice name)
{
    int b = 0;
    while (b < XM_SPLIT_BEHAVIOR_COUNT &&
           !xm_slice_equal(name, xm_slice_of(names[b], strlen(names[b]))))
        b++;
    return (enum xm_split_behavior)b;
}

/* Returns whether a span is merged with the previous one. Of several consecutive delimiters, only
 * the one next to other text is merged. */
static bool
joins_previous(enum xm_split_behavior behavior, const struct xm_span *span,
               bool previous_is_match)
{
    switch (behavior) {
    case XM_SPLIT_MERGED_WITH_PREVIOUS:
        return span->is_match && !previous_is_match;
    case XM_SPLIT_CONTIGUOUS:
        return span->is_match == previous_is_match;
    default:
        return false;
    }
}

static void
merge_forward(struct xm_span_list *list, enum xm_split_behavior behavior)
{
    size_t n = 0;
    bool previous_is_match = false;
    for (size_t i = 0; i < list->n; i++) {
        struct xm_span span = list->spans[i];
        if (n > 0 && joins_previous(behavior, &span, previous_is_match))
            list->spans[n - 1].end = span.end;
        else
            list->spans[n++] = (struct xm_span){span.start, span.end, false};
        previous_is_match = span.is_match;
    }
    list->n = n;
}

static void
merge_with_next(struct xm_span_list *list)
{
    size_t first = list->n; /* the result grows backwards from the list's end */
    bool next_is_match = false;
    for (size_t i = list->n; i-- > 0;) {
        struct xm_span span = list->spans[i];
        if (first < list->n && span.is_match && !next_is_match)
            list->spans[first].start = span.start;
        else
            list->spans[--first] = (struct xm_span){span.start, span.end, false};
        next_is_match = span.is_match;
    }
    list->n -= first;
    memmove(list->spans, list->spans + first, list->n * sizeof(*list->spans));
}

void
xm_split_merge(struct xm_span_list *list, enum xm_split_behavior behavior)
{
    if (behavior == XM_SPLIT_REMOVED || list->n == 0)
        return;
    if (behavior == XM_SPLIT_MERGED_WITH_NEXT)
        merge_with_next(list);
    else
        merge_forward(list, behavior);
}
