/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of one query row to a range of keys, one key at a time, with the online softmax:
 *
 *     m' = max(m, s)    l' = l e^(m - m') + e^(s - m')    o' = o e^(m - m') + e^(s - m') v
 */
#include "attention.h"
#include "rotation.h"

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
score(const struct attention *a, ulong q_row, __global uchar *page, uint row)
{
    const struct cached k = key_row(page, row);
    float s = 0.0f;
    for (int i = 0; i < D; i++)
        s += LOAD(SRC, a->q, q_row * D + i) * CACHED(K_CACHE, k, i);
    s *= a->scale;
    return a->soft_cap != 0.0f ? a->soft_cap * tanh(s / a->soft_cap) : s;
}

static void
add_key(struct row_state *state, float s, __global uchar *page, uint row)
{
    const struct cached v = value_row(page, row);
    const float m = fmax(state->m, s);
    const float keep = exp(state->m - m), p = exp(s - m);
    state->m = m;
    state->l = state->l * keep + p;
    for (int i = 0; i < DV; i++)
        state->o[i] = state->o[i] * keep + p * CACHED(V_CACHE, v, i);
}

/* Writes the finished result of a row (token, head), rotated back. */
static void
finish_row(const struct attention *a, struct row_state *s, ulong row,
           __global STORAGE(SRC) *out)
{
    const float norm = row_norm(a, row % HEADS_Q, s->m, s->l);
    rotate_elements(s->o, DV, VALUE_ROTATION);
    for (int i = 0; i < DV; i++)
        STORE(SRC, out, row * DV + i, s->o[i] * norm);
}

/* Computes the attention of token t, query head `head` of a sequence, to the keys [first, end). */
static void
attend_row(const struct attention *a, const struct sequence *s, int t, int head, int first,
           int end, struct row_state *state)
{
    const int head_kv = head / GROUP_HEADS;
    const ulong q_row = (ulong)(s->begin + t) * HEADS_Q + head;
    begin_row(state);
    for (int j = max(first, first_seen(a, s, t)); j < min(end, end_seen(s, t)); j++) {
        __global uchar *page = page_of(&a->cache, s, j);
        const uint row = page_row(head_kv, j);
        if (!page || is_padding(a, s, j))
            continue;
        const float score_j = score(a, q_row, page, row) + mask_at(a, s, head, t, j);
        if (score_j != -INFINITY)
            add_key(state, score_j, page, row);
    }
}

/* Returns the sequence of row `id` of the launch, and in *row the row's index in q. */
static struct sequence
sequence_of(const struct attention *a, ulong id, ulong *row)
{
    const uint token = id / HEADS_Q;
    const int index =
        find_sequence(&a->cache, a->first_sequence, a->sequences, 1, 0, token);
    *row = (ulong)a->cache.subsequence_begins[a->first_sequence] * HEADS_Q + id;
    return sequence_at(&a->cache, index);
}
