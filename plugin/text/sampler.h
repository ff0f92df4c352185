/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the next token of a text from a row of logits.
 *
 *     penalties -> top_k -> softmax(logits / temperature) -> top_p -> min_p -> draw
 *
 * The steps apply in this order (candidates.h); each works on the tokens that the one before it
 * left, with their probabilities renormalised. l is a token's logit:
 *
 *     repetition   l > 0 ? l * (1/r) : l * r   tokens among the last `last_n` accepted ones
 *     frequency    l - f * (times accepted)    the same tokens; with only_new, not the prompt's
 *     presence     l - p                       as frequency
 *     n-grams      l = -infinity               tokens that would repeat an n-gram of the text
 *     top_k        keeps the k most likely tokens
 *     top_p        keeps the fewest most likely tokens whose probabilities sum to top_p
 *     min_p        keeps the tokens at least min_p times as likely as the most likely one
 *
 * Temperature 0 is greedy: it takes the largest logit after the penalties, the lowest id of equal
 * ones. A token whose logit is NaN or -infinity is never chosen. The value 0 turns off each member
 * of struct xm_sampling from min_p on.
 *
 * A choice depends on the logits, the seed, and the tokens that this sampler has accepted and
 * chosen before. It does not depend on other texts or on threads.
 *
 * Random numbers come from SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom
 * Number Generators", 2014): a seed gives the same sequence on every machine, and number n follows
 * from the seed and n alone, so that a device can compute it (primitives/choose).
 */
#ifndef XM_PLUGIN_TEXT_SAMPLER_H
#define XM_PLUGIN_TEXT_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/operations/token_choice.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_sampling {
    float temperature; /* ≥ 0; 0: greedy        */
    int top_k;         /* ≤ 0: all tokens       */
    float top_p;       /* 0..1; 1: all tokens   */
    uint64_t seed;
    float min_p;              /* 0..1                                        */
    float repetition_penalty; /* > 0; 0 and 1: off                           */
    float presence_penalty, frequency_penalty;
    int last_n; /* the penalties see so many last accepted tokens; ≤ 0: all */
    /* presence and frequency penalties ignore the prompt's tokens; requires last_n = 0 */
    bool only_new;
    uint32_t no_repeat_ngram; /* n: no n consecutive tokens occur twice; 0: off */
};

/* The state of one text: accepted tokens and random numbers. Used by one thread at a time. */
struct xm_sampler;

/* Scratch memory of a choice, for any sampler with a vocabulary of at most this size: 24 bytes a
 * token. Used by one thread at a time, which may share it among its texts. NULL: no memory. */
struct xm_sampler_scratch;
struct xm_sampler_scratch *xm_sampler_scratch_create(size_t vocab_size);
void xm_sampler_scratch_free(struct xm_sampler_scratch *scratch); /* NULL is allowed */

/* Copies *sampling. XM_INVALID: a parameter is out of its range; the sentence names it. */
enum xm_status xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                                 struct xm_sampler **out, struct xm_error *err);
void xm_sampler_free(struct xm_sampler *sampler); /* NULL is allowed */

/* Begins a text: forgets all accepted tokens, then accepts the prompt's `n` tokens. */
enum xm_status xm_sampler_begin(struct xm_sampler *sampler, const int32_t *prompt,
                                size_t n, struct xm_error *err);

/* Counts `n` tokens for the penalties and n-grams; call it for each token that was generated. Ids
 * outside of the vocabulary are ignored. Does nothing when no penalty is set. */
enum xm_status xm_sampler_accept(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                                 struct xm_error *err);

/* Forgets all accepted tokens. */
void xm_sampler_forget(struct xm_sampler *sampler);

/* The next call of xm_sampler_next, and no later one, does not choose these tokens. Ids outside of
 * the vocabulary are ignored. */
enum xm_status xm_sampler_bar(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                              struct xm_error *err);

/* The next call of xm_sampler_next, and no later one, chooses only tokens whose bit is set: bit
 * i % 64 of bits[i / 64] for token i < 64 * n. The bits are not copied. */
void xm_sampler_allow(struct xm_sampler *sampler, const uint64_t *bits, size_t n);

/* Sets the logits of these tokens to -infinity. Ids outside of the vocabulary are ignored. */
void xm_bar_tokens(const int32_t *ids, size_t n, float *logits, size_t vocab_size);

/* Sets the logits to -infinity of all tokens that would make an n-gram of `text` (`length` tokens)
 * occur a second time: those that followed an earlier occurrence of its last n - 1 tokens. n = 0
 * changes nothing. */
void xm_bar_ngrams(const int32_t *text, size_t length, uint32_t n, float *logits,
                   size_t vocab_size);

/* Chooses a token from logits[vocab_size], which stay as they are; does not accept it. Allocates
 * nothing. XM_INVALID: all logits are NaN or -infinity. */
enum xm_status xm_sampler_next(struct xm_sampler *sampler,
                               struct xm_sampler_scratch *scratch, const float *logits,
                               int32_t *id, struct xm_error *err);

/* How the first token is chosen where a device does it; false: only xm_sampler_next can. */
bool xm_sampling_on_device(const struct xm_sampling *s, size_t vocab_size,
                           struct xm_token_choice *out);
/* How the next token is chosen where a device does it, which also counts the tokens that it
 * chooses; *seen points to the sampler's tokens until it accepts one. false: only xm_sampler_next
 * can, because n-grams matter or tokens are barred from this choice alone. */
bool xm_sampler_on_device(const struct xm_sampler *sampler, struct xm_token_choice *out,
                          struct xm_seen_tokens *seen);
/* A device has chosen in place of xm_sampler_next. */
void xm_sampler_skip(struct xm_sampler *sampler);

/* log(sum of exp(row[0..n-1])). Finite unless a logit is NaN or +infinity, or all are -infinity. */
double xm_log_sum_exp(const float *row, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
