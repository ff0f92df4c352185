/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/collective.h"

#include <inttypes.h>
#include <string.h>

enum xm_status
xm_collective_sum(struct xm_collective *c, const float *x, float *y, uint64_t n,
                  struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS];
    const struct xm_bytes mine = {(const uint8_t *)x, n * sizeof(*x)};
    XM_TRY(c->ops->show(c, mine, all, err));
    bool agree = true;
    for (uint32_t r = 0; r < c->ranks; r++)
        agree &= all[r].n == mine.n;
    for (uint32_t r = 0; r < c->ranks && agree; r++) {
        const float *part = (const float *)all[r].p;
        for (uint64_t i = 0; i < n; i++)
            y[i] = r ? y[i] + part[i] : part[i];
    }
    XM_TRY(c->ops->done(c, err));
    return agree ? XM_OK : xm_fail(err, XM_INVALID, "the ranks' summands differ in size");
}

enum xm_status
xm_collective_join(struct xm_collective *c, struct xm_bytes part, uint64_t outer,
                   uint8_t *whole, uint64_t bytes, struct xm_error *err)
{
    struct xm_bytes all[XM_MOST_RANKS];
    uint64_t sum = 0, at = 0;
    XM_TRY(c->ops->show(c, part, all, err));
    for (uint32_t r = 0; r < c->ranks; r++)
        sum += all[r].n;
    const bool fits = sum == bytes && outer > 0 && bytes % outer == 0;
    for (uint32_t r = 0; r < c->ranks && fits; r++) {
        const uint64_t row = all[r].n / outer;
        for (uint64_t o = 0; o < outer; o++)
            memcpy(whole + o * (bytes / outer) + at, all[r].p + o * row, row);
        at += row;
    }
    XM_TRY(c->ops->done(c, err));
    return fits ? XM_OK
                : xm_fail(err, XM_INVALID,
                          "the ranks' parts have %" PRIu64 " bytes, not %" PRIu64, sum,
                          bytes);
}
