/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench_sampling/heap.h"

#include <math.h>
#include <string.h>

static int
is_better(const struct xm_heap_entry *a, const struct xm_heap_entry *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static void
sift_down(struct xm_heap_entry *heap, size_t n, size_t i)
{
    const struct xm_heap_entry moved = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && is_better(&heap[child + 1], &heap[child]))
            child++;
        if (child >= n || !is_better(&heap[child], &moved))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moved;
}

/* Moves the best k to the front, or fewer if their weights reach `enough`; how many. */
static size_t
take_best(struct xm_heap_entry *c, size_t n, size_t k, double enough)
{
    double sum = 0.0;
    size_t taken = 0, left = n;
    for (size_t i = n / 2; i-- > 0;)
        sift_down(c, n, i);
    while (taken < k && left > 0 && (taken == 0 || sum < enough)) {
        const struct xm_heap_entry best = c[0];
        c[0] = c[--left];
        if (left > 0)
            sift_down(c, left, 0);
        c[left] = best;
        sum += best.weight;
        taken++;
    }
    memmove(c, c + n - taken, taken * sizeof(*c));
    return taken;
}

static double
sum_of(const struct xm_heap_entry *c, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += c[i].weight;
    return sum;
}

static void
penalise(const struct xm_sampling *s, const float *logits, size_t n,
         const uint32_t *counts, float *changed)
{
    for (size_t i = 0; i < n; i++) {
        float l = logits[i];
        if (counts[i] > 0) {
            l = l > 0.0f ? l / s->repetition_penalty : l * s->repetition_penalty;
            l -= (float)counts[i] * s->frequency_penalty + s->presence_penalty;
        }
        changed[i] = l;
    }
}

bool
xm_heap_knows(const struct xm_sampling *s)
{
    return s->typical_p == 0.0f && s->top_n_sigma == 0.0f && s->mirostat == 0 &&
           s->xtc_probability == 0.0f && s->dry_multiplier == 0.0f;
}

int32_t
xm_heap_choose(const struct xm_sampling *s, const float *logits, size_t n,
               const uint32_t *counts, float *changed, struct xm_heap_entry *entries,
               double unit)
{
    float largest = -INFINITY;
    size_t kept = 0;
    if (s->repetition_penalty > 0.0f) {
        penalise(s, logits, n, counts, changed);
        logits = changed;
    }
    for (size_t i = 0; i < n; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct xm_heap_entry){
            logits[i], (int32_t)i,
            exp(((double)logits[i] - (double)largest) / (double)s->temperature)};
    if (s->top_k > 0 && (size_t)s->top_k < n)
        n = take_best(entries, n, (size_t)s->top_k, INFINITY);
    if (s->top_p < 1.0f)
        n = take_best(entries, n, n, (double)s->top_p * sum_of(entries, n));
    for (size_t i = 0; i < n; i++)
        if (entries[i].weight >= (double)s->min_p)
            entries[kept++] = entries[i];
    double left = unit * sum_of(entries, kept);
    size_t at = 0;
    while (at + 1 < kept && left >= entries[at].weight)
        left -= entries[at++].weight;
    return entries[at].id;
}
