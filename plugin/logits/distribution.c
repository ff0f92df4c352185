/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/logits/distribution.h"

#include <math.h>
#include <stdbool.h>

#include "plugin/text/candidates.h"

uint64_t
xm_likeliest(const float *row, uint64_t n)
{
    const int32_t best = xm_find_largest(row, n);
    return best < 0 ? 0 : (uint64_t)best;
}

struct xm_estimate
xm_estimate_of(double sum, double squares, uint64_t n, uint64_t least)
{
    const double count = (double)n, mean = n ? sum / count : 0.0;
    const double variance = n ? squares / count - mean * mean : 0.0;
    const bool is_known = n >= least && n > 1 && variance > 0.0;
    return (struct xm_estimate){mean, is_known ? sqrt(variance / (count - 1.0)) : 0.0};
}

struct xm_estimate
xm_estimate_exp(struct xm_estimate e)
{
    const double value = exp(e.value);
    return (struct xm_estimate){value, value * e.error};
}
