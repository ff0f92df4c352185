/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters by which a token is chosen from a row of logits, as the numbers that host and
 * devices calculate with. plugin/text/sampler.h explains the parameters, plugin/text/token_weight.h
 * the weight of a token.
 *
 * If penalties depend on the last tokens (a window), or some tokens are barred, the device keeps a
 * count of each token in the window. The counts start from struct xm_seen_tokens; then the device
 * counts the tokens that it chooses.
 */
#ifndef XM_RUNTIME_OPERATIONS_TOKEN_CHOICE_H
#define XM_RUNTIME_OPERATIONS_TOKEN_CHOICE_H

#include <stddef.h>
#include <stdint.h>

/* Most tokens of a window, which a device keeps in a ring buffer. */
enum { XM_TOKEN_WINDOW_MOST = 1 << 16 };

/* The parameters, laid out as kernels read them (kernels/cl/include/choose.h). */
struct xm_token_choice {
    uint64_t n; /* choices so far: the index of the next random number  */
    uint64_t seed;
    uint64_t least; /* least weight that min_p keeps */
    uint64_t top_p; /* fraction in units of 2^-32 */
    uint32_t top_k; /* below the number of logits; 0: all */
    float steps;    /* log2(e) / temperature, in units of 2^-20 */
    float largest;  /* weight of the largest logit */
    /* 0: greedy: takes the largest logit, of equal ones the lowest id; then the members from `seed`
     * to here are 0 */
    uint32_t draws;
    float repetition, inverse_repetition, frequency, presence; /* penalties */
    uint32_t window; /* number of last tokens that penalties see; 0: all */
    /* window > 0: tokens in the ring buffer, index of the oldest; else 0 */
    uint32_t in_window, oldest;
    /* 0: logits are used as they are, and no token is counted */
    uint32_t adjusts;
};

/* How often a token occurs in the window. */
struct xm_token_count {
    int32_t id;
    uint32_t count;  /* at least 1 */
    uint32_t before; /* occurrences that presence and frequency penalties ignore     */
};

/* The tokens before a device's first choice; all pointers are borrowed. */
struct xm_seen_tokens {
    const struct xm_token_count *counts; /* [n], each token once */
    size_t n;
    const int32_t *ring; /* [in_window], ids of the window; NULL: it is unlimited */
    /* ids that are never chosen; those beyond the vocabulary are ignored */
    const int32_t *barred;
    size_t n_barred;
};

#endif
