/* SPDX-License-Identifier: Apache-2.0
 *
 * Top-k by repeated search for the best element after the last one found. The order is total:
 * better value first, then lower index; NaN comes after all numbers, for largest and for smallest,
 * so that ids are always valid and distinct. Integers are compared as integers, because f32 cannot
 * tell those beyond 2^24 apart.
 */
#include <math.h>

#include "runtime/reference/reference.h"

/* Whether element a comes before element b in that order. */
static bool
stands_before(const struct xm_ref_row *x, uint64_t a, uint64_t b, bool largest)
{
    const uint64_t at_a = a * x->stride, at_b = b * x->stride;
    bool is_more, is_less;
    if (x->i) {
        is_more = x->i[at_a] > x->i[at_b];
        is_less = x->i[at_a] < x->i[at_b];
    } else {
        const bool nan_a = isnan(x->f[at_a]), nan_b = isnan(x->f[at_b]);
        if (nan_a != nan_b)
            return nan_b;
        is_more = x->f[at_a] > x->f[at_b];
        is_less = x->f[at_a] < x->f[at_b];
    }
    return is_more == is_less ? a < b : largest ? is_more : is_less;
}

void
xm_ref_topk_ids(const struct xm_ref_row *x, uint64_t k, bool largest, int32_t *ids)
{
    for (uint64_t s = 0; s < k && s < x->n; s++) {
        uint64_t best = x->n;
        for (uint64_t i = 0; i < x->n; i++) {
            if (s > 0 && !stands_before(x, (uint64_t)ids[s - 1], i, largest))
                continue;
            if (best == x->n || stands_before(x, i, best, largest))
                best = i;
        }
        ids[s] = (int32_t)best;
    }
}

void
xm_ref_topk(const float *x, uint64_t rows, uint64_t n, uint64_t k, bool largest,
            float *values, int32_t *ids)
{
    for (uint64_t r = 0; r < rows; r++, x += n, values += k, ids += k) {
        xm_ref_topk_ids(&(struct xm_ref_row){.f = x, .n = n, .stride = 1}, k, largest,
                        ids);
        for (uint64_t s = 0; s < k && s < n; s++)
            values[s] = x[ids[s]];
    }
}
