/* SPDX-License-Identifier: Apache-2.0
 *
 * References of the planted ops, on rows along the last axis:
 *
 *     twice(x) = 2 x     square(x) = x^2     centre(x) = x - mean of its row     sorted(x): rows in
 *     ascending order
 */
#include <stdlib.h>

#include "transformations/graph/evaluate_ops.h"

enum xm_status
xm_eval_twice(struct xm_eval_call *c)
{
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->f[i] = 2.0f * c->in[0]->f[i];
    return XM_OK;
}

enum xm_status
xm_eval_square(struct xm_eval_call *c)
{
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->f[i] = c->in[0]->f[i] * c->in[0]->f[i];
    return XM_OK;
}

static uint64_t
row_of(const struct xm_tensor *t)
{
    return (uint64_t)t->dim[t->rank - 1];
}

enum xm_status
xm_eval_centre(struct xm_eval_call *c)
{
    const uint64_t cols = row_of(c->in[0]);
    for (uint64_t at = 0; at < c->out[0]->n; at += cols) {
        double sum = 0.0;
        for (uint64_t i = at; i < at + cols; i++)
            sum += c->in[0]->f[i];
        for (uint64_t i = at; i < at + cols; i++)
            c->out[0]->f[i] = (float)(c->in[0]->f[i] - sum / (double)cols);
    }
    return XM_OK;
}

static int
compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

enum xm_status
xm_eval_sorted(struct xm_eval_call *c)
{
    const uint64_t cols = row_of(c->in[0]);
    for (uint64_t i = 0; i < c->out[0]->n; i++)
        c->out[0]->f[i] = c->in[0]->f[i];
    for (uint64_t at = 0; at < c->out[0]->n; at += cols)
        qsort(c->out[0]->f + at, cols, sizeof(float), compare);
    return XM_OK;
}
