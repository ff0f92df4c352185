/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_stats.h"

#include <stdlib.h>

#include "runtime/util/memory.h"

static int
compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct xm_benchmark_latency
xm_benchmark_latency_of(double *ms, size_t n, uint64_t percent)
{
    struct xm_benchmark_latency l = {0};
    double sum = 0.0;
    qsort(ms, n, sizeof(*ms), compare);
    for (size_t i = 0; i < n; i++)
        sum += ms[i];
    const size_t rank =
        (n / 100) * (size_t)percent + ((n % 100) * (size_t)percent + 99) / 100;
    l.percentile = ms[rank ? rank - 1 : 0];
    l.average = sum / (double)n;
    l.min = ms[0];
    l.max = ms[n - 1];
    return l;
}

uint64_t
xm_benchmark_whole_rounds(uint64_t niter, uint64_t round)
{
    uint64_t up;
    return xm_add_size(niter, round - 1, &up) ? up / round * round : niter;
}
