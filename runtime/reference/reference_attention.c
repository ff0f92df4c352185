/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention (Vaswani et al. 2017) with grouped heads (Ainslie et al.
 * 2023), soft cap (c tanh(s / c), Gemma 2), sliding window and sinks (a score without a
 * value: it only enlarges the denominator). One row of scores at a time.
 */
#include <math.h>
#include <string.h>

#include "runtime/reference/dot.h"
#include "runtime/reference/reference.h"
#include "runtime/util/memory.h"

static bool
sees(const struct xm_ref_attention *a, uint64_t t, uint64_t j)
{
    uint64_t position = a->past + t;
    if (a->key_mask && a->key_mask[j] == 0)
        return false;
    if (a->causal && j > position)
        return false;
    return a->window == 0 || j > position || position - j < a->window;
}

/* Scores of row (t, h); positions that are not seen are -infinity. */
static void
score_row(const struct xm_ref_attention *a, uint64_t t, uint64_t h, float *score)
{
    uint64_t h_kv = h / (a->heads_q / a->heads_kv);
    const float *q = a->q + (t * a->heads_q + h) * a->d;
    const float *mask = NULL;
    if (a->mask)
        mask = a->mask + ((a->mask_heads == 1 ? 0 : h) * a->tokens + t) * a->keys;
    for (uint64_t j = 0; j < a->keys; j++) {
        score[j] = -INFINITY;
        if (!sees(a, t, j))
            continue;
        float s = a->scale * xm_ref_dot(q, a->k + (j * a->heads_kv + h_kv) * a->d, a->d);
        if (a->soft_cap != 0.0f)
            s = a->soft_cap * tanhf(s / a->soft_cap);
        score[j] = mask ? s + mask[j] : s;
    }
}

static void
attend_row(const struct xm_ref_attention *a, uint64_t t, uint64_t h, float *score)
{
    uint64_t h_kv = h / (a->heads_q / a->heads_kv);
    float *out = a->out + (t * a->heads_q + h) * a->dv;
    float max = a->sinks ? a->sinks[h] : -INFINITY;
    memset(out, 0, a->dv * sizeof(*out));
    score_row(a, t, h, score);
    for (uint64_t j = 0; j < a->keys; j++)
        max = score[j] > max ? score[j] : max;
    float sum = a->sinks ? expf(a->sinks[h] - max) : 0.0f;
    for (uint64_t j = 0; j < a->keys; j++) {
        if (score[j] == -INFINITY)
            continue;
        float p = expf(score[j] - max);
        const float *v = a->v + (j * a->heads_kv + h_kv) * a->dv;
        sum += p;
        for (uint64_t i = 0; i < a->dv; i++)
            out[i] += p * v[i];
    }
    for (uint64_t i = 0; i < a->dv && sum != 0.0f; i++)
        out[i] /= sum;
}

enum xm_status
xm_ref_attention(const struct xm_ref_attention *a)
{
    uint64_t bytes;
    float *score = xm_mul_size(a->keys, sizeof(*score), &bytes) ? xm_malloc(bytes) : NULL;
    if (!score)
        return XM_NO_MEMORY;
    for (uint64_t t = 0; a->dv > 0 && t < a->tokens; t++) {
        for (uint64_t h = 0; h < a->heads_q; h++)
            attend_row(a, t, h, score);
    }
    xm_free(score);
    return XM_OK;
}
