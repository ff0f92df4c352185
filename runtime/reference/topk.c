/* SPDX-License-Identifier: Apache-2.0
 *
 * Top-k by repeated search for the best element after the last one found. The order is total:
 * better value first, then lower index; NaN comes after all numbers, for largest and for smallest,
 * so that ids are always valid and distinct.
 */
#include <math.h>

#include "runtime/reference/reference.h"

/* Whether x[a] comes before x[b] in that order. */
static bool
stands_before(const float *x, uint64_t a, uint64_t b, bool largest)
{
    bool nan_a = isnan(x[a]), nan_b = isnan(x[b]);
    if (nan_a != nan_b)
        return nan_b;
    if (nan_a || x[a] == x[b])
        return a < b;
    return largest ? x[a] > x[b] : x[a] < x[b];
}

void
xm_ref_topk(const float *x, uint64_t rows, uint64_t n, uint64_t k, bool largest,
            float *values, int32_t *ids)
{
    for (uint64_t r = 0; r < rows; r++, x += n, values += k, ids += k) {
        for (uint64_t s = 0; s < k && s < n; s++) {
            uint64_t best = n;
            for (uint64_t i = 0; i < n; i++) {
                if (s > 0 && !stands_before(x, (uint64_t)ids[s - 1], i, largest))
                    continue;
                if (best == n || stands_before(x, i, best, largest))
                    best = i;
            }
            values[s] = x[best];
            ids[s] = (int32_t)best;
        }
    }
}
