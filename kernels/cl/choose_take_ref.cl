/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a token from logits[n] and the best of their parts (choose_best_ref), as the host does
 * (plugin/text/sampler.h); -1 if the logits are no distribution. One work-item for each text.
 */
#include "choose.h"

/* The tokens with keys of at least `floor` and weights of at least `least`. */
struct row {
    __global const float *logits;
    uint n;
    float largest;
    struct state s;
    ulong floor, least;
};

/* Returns the sum of the weights of the row's tokens with keys of at least `key`, or their
 * number. */
static ulong
sum_from(const struct row *r, ulong key, bool by_weight)
{
    ulong sum = 0;
    key = max(key, max(r->floor, 1ul));
    for (uint i = 0; i < r->n; i++) {
        const ulong w = weight_of(r->logits[i], r->largest, &r->s);
        if (key_of(r->logits[i], i) >= key && w >= r->least)
            sum += by_weight ? w : 1;
    }
    return sum;
}

/* Returns the largest key such that the tokens with at least this key add up to `enough`; 0:
 * none. */
static ulong
threshold(const struct row *r, ulong enough, bool by_weight)
{
    ulong key = 0;
    for (ulong bit = 1ul << 63; bit > 0; bit >>= 1)
        key |= sum_from(r, key | bit, by_weight) >= enough ? bit : 0;
    return key;
}

static int
draw(struct row *r)
{
    if (r->s.top_k && r->s.top_k < r->n)
        r->floor = threshold(r, r->s.top_k, false);
    const ulong sum = sum_from(r, 0, true);
    r->least = r->s.least;
    if (r->s.top_p >> 32 == 0)
        r->floor = max(r->floor, threshold(r, enough_of(sum, r->s.top_p), true));
    ulong left = mul_hi(random_bits(r->s.seed, r->s.n), sum_from(r, 0, true));
    for (uint i = 0; i < r->n; i++) {
        const ulong w = weight_of(r->logits[i], r->largest, &r->s);
        const bool stays = key_of(r->logits[i], i) >= max(r->floor, 1ul) && w >= r->least;
        if (stays && left < w)
            return (int)i;
        left -= stays ? w : 0;
    }
    return -1;
}

__kernel void
choose_take_ref(__global const float *logits, __global const struct part *parts,
                __global struct state *state, __global struct seen *seen,
                __global int *chosen, __global STORAGE(IDS) *ids,
                __global STORAGE(POSITIONS) *position, __global int *past, uint n,
                uint seen_stride)
{
    const uint text = get_global_id(0);
    logits += (ulong)text * n;
    parts += text * parts_of(n);
    seen += (ulong)text * seen_stride;
    state += text;
    struct part best = parts[0];
    for (uint p = 1; p * PART < n; p++) {
        best.key = max(best.key, parts[p].key);
        best.unsound |= parts[p].unsound;
    }
    int id = best.key && !best.unsound ? (int)(uint)~best.key : -1;
    if (id >= 0 && state->draws) {
        struct row r = {logits, n, logits[id], *state, 0, 0};
        id = draw(&r);
    }
    put_choice(text, id, state, seen, n, chosen, ids, position, past);
}
