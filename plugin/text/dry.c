/* SPDX-License-Identifier: Apache-2.0
 *
 * The length of the match between the end of the text and the part that ends at each earlier
 * position is the Z function of the reversed text (D. Gusfield, "Algorithms on Strings, Trees, and
 * Sequences", 1997); one pass computes all of them.
 */
#include "plugin/text/dry.h"

#include <math.h>

static const float base_unsaid = 1.75f;
enum { ALLOWED_UNSAID = 2 };

static bool
is_breaker(const struct xm_token_view *set, int32_t id)
{
    size_t low = 0, high = set->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (set->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->n && set->ids[low] == id;
}

/* Returns the number of tokens behind the last breaker. */
static size_t
count_unbroken(const struct xm_token_view *breakers, const int32_t *text, size_t length)
{
    size_t n = 0;
    while (n < length && !is_breaker(breakers, text[length - 1 - n]))
        n++;
    return n;
}

/* Sets matches[k] to the number of equal tokens when reading backwards from last[0] and from
 * last[-k]. */
static void
find_matches(const int32_t *last, size_t length, uint32_t *matches)
{
    size_t begin = 0, end = 0; /* the match found so far that ends farthest */
    for (size_t k = 1; k < length; k++) {
        size_t n = 0;
        if (k < end)
            n = matches[k - begin] < end - k ? matches[k - begin] : end - k;
        while (k + n < length && last[-(ptrdiff_t)n] == last[-(ptrdiff_t)(k + n)])
            n++;
        matches[k] = (uint32_t)n;
        if (k + n > end) {
            begin = k;
            end = k + n;
        }
    }
}

/* Returns the logit minus the penalty. The result stays finite, because -infinity would mean that
 * the token is forbidden. */
static float
reduced(const struct xm_sampling *s, uint32_t allowed, uint32_t n, float logit)
{
    const float base = s->dry_base > 0.0f ? s->dry_base : base_unsaid;
    const double penalty = (double)s->dry_multiplier * pow((double)base, n - allowed);
    const double x = (double)logit - penalty;
    return x < -(double)FLT_MAX && logit > -INFINITY ? -FLT_MAX : (float)x;
}

void
xm_dry_penalise(const struct xm_sampling *s, const int32_t *text, size_t length,
                const struct xm_dry_scratch *scratch, float *logits)
{
    const uint32_t allowed =
        s->dry_allowed_length > 0 ? (uint32_t)s->dry_allowed_length : ALLOWED_UNSAID;
    const size_t window = s->dry_last_n > 0 ? (size_t)s->dry_last_n : SIZE_MAX;
    const size_t n = length < window ? length : window;
    const size_t unbroken = count_unbroken(&s->dry_breakers, text + length - n, n);
    if (n == 0 || unbroken < allowed)
        return;
    const int32_t *last = text + length - 1;
    find_matches(last, n, scratch->matches);
    for (size_t k = 1; k < n; k++) {
        uint32_t *longest = &scratch->longest[last[1 - (ptrdiff_t)k]];
        const uint32_t match =
            scratch->matches[k] < unbroken ? scratch->matches[k] : (uint32_t)unbroken;
        if (match >= allowed && match > *longest)
            *longest = match;
    }
    for (size_t k = 1; k < n; k++) {
        const int32_t id = last[1 - (ptrdiff_t)k];
        if (scratch->longest[id])
            logits[id] = reduced(s, allowed, scratch->longest[id], logits[id]);
        scratch->longest[id] = 0;
    }
}
