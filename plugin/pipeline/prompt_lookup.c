/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/prompt_lookup.h"

/* Returns how many tokens before `end`, at most `most`, equal the last tokens of the text. */
static size_t
agreeing(const int32_t *text, size_t n, size_t end, size_t most)
{
    size_t k = 0;
    while (k < most && k < end && text[end - 1 - k] == text[n - 1 - k])
        k++;
    return k;
}

struct xm_guess
xm_prompt_lookup(const int32_t *text, size_t n, size_t longest, size_t most)
{
    size_t at = 0, best = 0;
    for (size_t end = n; end-- > 1 && best < longest;) {
        const size_t k = agreeing(text, n, end, longest);
        /* among equally long matches, the latest; the search runs backwards */
        if (k > best) {
            best = k;
            at = end;
        }
    }
    if (at == 0)
        return (struct xm_guess){0};
    return (struct xm_guess){text + at, n - at < most ? n - at : most};
}
