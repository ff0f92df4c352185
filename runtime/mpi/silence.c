/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mpi/silence.h"

/* A call of xm_silence_find that comes as many intervals after the last one counts as one
 * interval. */
enum { MOST_INTERVALS = 2 };

void
xm_silence_begin(struct xm_silence *s, uint32_t ranks, uint32_t own, double limit_s,
                 double interval_s, double now)
{
    *s = (struct xm_silence){.ranks = ranks,
                             .own = own,
                             .limit_s = limit_s,
                             .interval_s = interval_s,
                             .last = now};
}

void
xm_silence_heard(struct xm_silence *s, uint32_t rank)
{
    s->is_heard[rank] = true;
}

uint32_t
xm_silence_find(struct xm_silence *s, double now)
{
    const bool is_delayed = now - s->last >= MOST_INTERVALS * s->interval_s;
    const double passed = is_delayed ? s->interval_s : now - s->last;
    uint32_t first = s->ranks;
    s->last = now;
    for (uint32_t r = s->ranks; r-- > 0;) {
        if (r == s->own || s->has_ended[r])
            continue;
        s->silent_s[r] = s->is_heard[r] ? 0.0 : s->silent_s[r] + passed;
        s->is_heard[r] = false;
        first = s->silent_s[r] > s->limit_s ? r : first;
    }
    return first;
}

uint32_t
xm_silence_first(const struct xm_silence *s)
{
    uint32_t r = 0;
    while (r != s->own && (s->has_ended[r] || s->silent_s[r] > s->limit_s / 2))
        r++;
    return r;
}
