/* SPDX-License-Identifier: Apache-2.0
 *
 * One query row against a range of keys, one key at a time, with the online softmax:
 *
 *     m' = max(m, s)    l' = l e^(m - m') + e^(s - m')    o' = o e^(m - m') + e^(s - m') v
 */
#include "attention.h"

/* Running maximum, denominator and weighted sum. */
struct row_state {
    float m, l;
    float o[DV];
};

static void
begin_row(struct row_state *s)
{
    s->m = -INFINITY;
    s->l = 0.0f;
    for (int i = 0; i < DV; i++)
        s->o[i] = 0.0f;
}

static float
score(const struct attention *a, ulong q_row, long k_row)
{
    float s = 0.0f;
    for (int i = 0; i < D; i++)
        s += LOAD(SRC, a->q, q_row * D + i) * LOAD(CACHE, a->k_cache, k_row * D + i);
    if (CACHE_SCALED)
        s *= a->k_scale[k_row];
    s *= a->scale;
    return a->soft_cap != 0.0f ? a->soft_cap * tanh(s / a->soft_cap) : s;
}

static void
add_key(const struct attention *a, struct row_state *state, float s, long v_row)
{
    const float m = fmax(state->m, s);
    const float keep = exp(state->m - m), p = exp(s - m);
    const float weight = CACHE_SCALED ? p * a->v_scale[v_row] : p;
    state->m = m;
    state->l = state->l * keep + p;
    for (int i = 0; i < DV; i++)
        state->o[i] = state->o[i] * keep + weight * LOAD(CACHE, a->v_cache, v_row * DV + i);
}

/* The softmax of row (b, t, h), complete. */
static void
finish_row(const struct attention *a, const struct row_state *s, ulong row,
           __global STORAGE(SRC) *out)
{
    const float norm = row_norm(a, row % HEADS_Q, s->m, s->l);
    for (int i = 0; i < DV; i++)
        STORE(SRC, out, row * DV + i, s->o[i] * norm);
}

/* Token t, query head `head` of sequence b over the keys [first, end). */
static void
attend_row(const struct attention *a, int b, int t, int head, long first, long end,
           struct row_state *state)
{
    const ulong q_row = ((ulong)b * a->tokens + t) * HEADS_Q + head;
    begin_row(state);
    for (long j = max(first, first_seen(a, t)); j < min(end, end_seen(a, t)); j++) {
        const long row = cache_row(a, b, head / GROUP_HEADS, j);
        if (row < 0 || is_padding(a, b, j))
            continue;
        const float s = score(a, q_row, row) + mask_at(a, b, head, t, j);
        if (s != -INFINITY)
            add_key(a, state, s, row);
    }
}
