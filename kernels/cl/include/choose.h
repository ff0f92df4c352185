/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing a token: the order of logits and their weights, bit for bit those of the host
 * (plugin/text/candidates.h, token_weight.h). Each text has a row of logits, a row of parts, a row
 * of seen tokens, and a state.
 */
#include "token_arithmetic.h"
#include "types.h"

#ifndef IDS
#define IDS i64
#endif
#ifndef POSITIONS
#define POSITIONS i64
#endif
#ifndef ADJUSTS
#define ADJUSTS 1 /* 1: logits change before a token is chosen */
#endif

enum { PART = 1024, SLOTS = 4 }; /* primitives/choose/choose.h */

/* key: that of the best token of a part (key_of); unsound not 0: a logit of the part is NaN or
 * +infinity. */
struct part {
    ulong key, unsound;
};

static inline uint
parts_of(uint n)
{
    return (n + PART - 1) / PART;
}

/* struct xm_token_choice */
struct state {
    ulong n, seed, least, top_p;
    uint top_k;
    float steps, largest;
    uint draws;
    float repetition, inverse_repetition, frequency, presence;
    uint window, in_window, oldest, adjusts;
};

/* count: how often a token is in the penalties' window; fresh: how often of that presence and
 * frequency penalties count. */
struct seen {
    uint count, fresh;
};

#define BARRED (1u << 31) /* bit of `count`: the token must not be chosen */

/* Returns a key that orders tokens by logit; of equal logits the lower id has the larger key. 0:
 * logit is -infinity or NaN, and the token cannot be chosen. */
static inline ulong
key_of(float logit, uint id)
{
    const uint sign = 1u << 31;
    uint bits = as_uint(logit);
    bits = bits == sign ? 0 : bits; /* -0 and +0 are equal */
    bits = bits & sign ? ~bits : bits | sign;
    return logit > -INFINITY ? (ulong)bits << 32 | (uint)~id : 0;
}

/* Returns the penalised logit of a token that is in the window or barred, and stores it in place
 * for the kernel that takes a token. */
static inline float
adjust(__global float *logit, struct seen t, __global const struct state *s)
{
    *logit = t.count & BARRED ? -INFINITY
                              : penalised(*logit, t.fresh, s->repetition,
                                          s->inverse_repetition, s->frequency, s->presence);
    return *logit;
}

static inline ulong
weight_of(float logit, float largest, const struct state *s)
{
    const float most = 64 << 20, x = (largest - logit) * s->steps;
    const int exponent = (int)((x < most ? x : most) + 0.5f);
    const float g = -(float)(exponent & ((1 << 20) - 1)) * 0x1p-20f;
    const float p = two_to_the(g);
    return (ulong)(p * as_float((uint)(127 - (exponent >> 20)) << 23) * s->largest);
}

/* Adds a token to the window. A window of limited length is a ring of tokens behind the counts; its
 * oldest token leaves. */
static inline void
see(uint id, __global struct state *s, __global struct seen *seen, uint n)
{
    __global int *ring = (__global int *)(seen + n);
    seen[id].count++;
    seen[id].fresh++;
    if (s->in_window < s->window) {
        ring[s->in_window++] = id;
    } else if (s->window) {
        const int left = ring[s->oldest];
        seen[left].count--;
        seen[left].fresh--;
        ring[s->oldest] = id;
        s->oldest = s->oldest + 1 < s->window ? s->oldest + 1 : 0;
    }
}

/* Stores the chosen token of a text for the host and as input of the next run. */
static inline void
put_choice(uint text, int id, __global struct state *s, __global struct seen *seen, uint n,
           __global int *chosen, __global STORAGE(IDS) *ids,
           __global STORAGE(POSITIONS) *position, __global int *past)
{
#if ADJUSTS
    if (id >= 0)
        see(id, s, seen, n);
#endif
    chosen[text * SLOTS + s->n % SLOTS] = id;
    s->n++;
    ids[text] = id;
    if (position)
        position[text]++;
    past[text]++;
}
