/* SPDX-License-Identifier: Apache-2.0
 *
 * How a token is chosen from a row of logits, in the numbers that host and devices calculate with:
 * plugin/text/sampler.h says what they mean, plugin/text/token_weight.h what a weight is.
 *
 * Where penalties depend on the tokens of a window, or some tokens must not come, a device keeps
 * how often each token has been seen. It begins with what the host has seen (struct
 * xm_seen_tokens), and counts the tokens that it chooses.
 */
#ifndef XM_RUNTIME_OPERATIONS_TOKEN_CHOICE_H
#define XM_RUNTIME_OPERATIONS_TOKEN_CHOICE_H

#include <stddef.h>
#include <stdint.h>

/* Tokens of a device's ring at most. */
enum { XM_TOKEN_WINDOW_MOST = 1 << 16 };

/* As kernels read it (kernels/cl/include/choose.h). */
struct xm_token_choice {
    uint64_t n; /* choices so far: the number of the next random number */
    uint64_t seed;
    uint64_t least; /* weight that min_p leaves */
    uint64_t top_p; /* in units of 2^-32 */
    uint32_t top_k; /* below the number of logits; 0: all */
    float steps;    /* log2(e) / temperature, in units of 2^-20 */
    float largest;  /* weight */
    /* 0: the largest logit, the lowest id of equal ones; the members from seed on are 0, too */
    uint32_t draws;
    float repetition, inverse_repetition, frequency, presence; /* penalties */
    uint32_t window;            /* last tokens that the penalties see; 0: all */
    uint32_t in_window, oldest; /* of a window that has an end: its ring; else 0 */
    uint32_t adjusts;           /* 0: no logit changes, and no token is counted */
};

/* Occurrences of a token in the window. */
struct xm_token_count {
    int32_t id;
    uint32_t count;  /* at least 1 */
    uint32_t before; /* of these, those that presence and frequency penalties ignore */
};

/* What a device has to know of the tokens before its first choice; borrowed. */
struct xm_seen_tokens {
    const struct xm_token_count *counts; /* [n], each token once */
    size_t n;
    const int32_t *ring;   /* [in_window]; NULL: the window has no end */
    const int32_t *barred; /* never chosen; ids beyond the vocabulary are ignored */
    size_t n_barred;
};

#endif
