/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/label_times.h"

#include <stdatomic.h>

#include "runtime/util/memory.h"

struct sum {
    atomic_uint_fast64_t runs, ns;
};

struct xm_label_times {
    uint32_t n;
    struct sum *sums;
};

struct xm_label_times *
xm_label_times_create(uint32_t n)
{
    struct xm_label_times *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->n = n;
    t->sums = xm_calloc((size_t)n + 1, sizeof(*t->sums));
    if (t->sums)
        return t;
    xm_free(t);
    return NULL;
}

void
xm_label_times_destroy(struct xm_label_times *t)
{
    if (t)
        xm_free(t->sums);
    xm_free(t);
}

void
xm_label_times_add_run(struct xm_label_times *t, uint32_t label)
{
    if (t && label < t->n)
        atomic_fetch_add_explicit(&t->sums[label].runs, 1, memory_order_relaxed);
}

void
xm_label_times_add_ns(struct xm_label_times *t, uint32_t label, uint64_t ns)
{
    if (label < t->n)
        atomic_fetch_add_explicit(&t->sums[label].ns, ns, memory_order_relaxed);
}

uint64_t
xm_label_times_mean_ns(const struct xm_label_times *t, uint32_t label)
{
    if (label >= t->n)
        return 0;
    const uint64_t runs =
        atomic_load_explicit(&t->sums[label].runs, memory_order_relaxed);
    const uint64_t ns = atomic_load_explicit(&t->sums[label].ns, memory_order_relaxed);
    return runs ? ns / runs : 0;
}
