/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/logits/logits_match.h"

#include <math.h>
#include <stddef.h>

#include "plugin/logits/distribution.h"
#include "plugin/text/log_sum_exp.h"
#include "runtime/util/compiler.h"

static double
mean_of(const float *row, uint64_t n)
{
    double sum = 0.0;
    uint64_t finite = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (isfinite(row[i])) {
            sum += (double)row[i];
            finite++;
        }
    }
    return finite ? sum / (double)finite : 0.0;
}

void
xm_logits_compare(const float *a, const float *b, uint64_t n, struct xm_logits_match *out)
{
    const double mean = mean_of(b, n);
    const double sum_a = xm_log_sum_exp(a, n), sum_b = xm_log_sum_exp(b, n);
    *out = (struct xm_logits_match){.likeliest = xm_likeliest(a, n),
                                    .other_likeliest = xm_likeliest(b, n)};
    for (uint64_t i = 0; i < n; i++) {
        const double x = (double)a[i], y = (double)b[i];
        const double difference = x == y ? 0.0 : fabs(x - y);
        out->error += difference * difference;
        out->largest = fmax(out->largest, difference);
        if (!isfinite(y))
            continue;
        out->square += y * y;
        out->variation += (y - mean) * (y - mean);
        const double p = exp(y - sum_b);
        if (p > 0.0)
            out->kld += p * ((y - sum_b) - (x - sum_a));
    }
}

/* Returns error / size; 0 for equal rows. A NaN in a row gives NaN. */
static double
ratio(double error, double size)
{
    return error == 0.0 ? 0.0 : error / size;
}

double
xm_nmse_sum(const struct xm_logits_match *m)
{
    return ratio(m->error, m->square);
}

double
xm_nmse(const struct xm_logits_match *m)
{
    return ratio(m->error, m->variation);
}

/* clang-format off */
static const struct {
    double below;
    const char *label;
    bool passes;
} labels[] = {
    { 1e-6,     "essentially identical", true  },
    { 1e-4,     "excellent",             true  },
    { 1e-3,     "very good",             true  },
    { 1e-2,     "good",                  true  },
    { 1e-1,     "needs review",          false },
    { INFINITY, "poor",                  false },
};
/* clang-format on */

/* Returns the row of the verdict; NaN and infinity belong to the last. */
static size_t
row_of(double nmse)
{
    size_t i = 0;
    while (i + 1 < XM_ARRAY_LEN(labels) && !(nmse < labels[i].below))
        i++;
    return i;
}

const char *
xm_nmse_label(double nmse)
{
    return labels[row_of(nmse)].label;
}

bool
xm_nmse_passes(double nmse)
{
    return labels[row_of(nmse)].passes;
}

uint64_t
xm_logits_top(const float *row, uint64_t vocabulary, uint64_t *ids, uint64_t n)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < vocabulary; i++) {
        uint64_t at = found < n ? found++ : n;
        for (; at > 0 && row[i] > row[ids[at - 1]]; at--) {
            if (at < n)
                ids[at] = ids[at - 1];
        }
        if (at < n)
            ids[at] = i;
    }
    return found;
}
