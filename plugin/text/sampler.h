/* SPDX-License-Identifier: Apache-2.0
 *
 * The next token from logits.
 *
 *     penalties -> top_k -> softmax(logits / temperature) -> top_p -> min_p -> draw
 *
 * Filters work in this order (candidates.h); each sees what the one before it has left,
 * renormalised.
 *
 *     repetition   l > 0 ? l / r : l * r            for tokens among the last_n accepted
 *     frequency    l - f * (times it was accepted)  the same; with only_new not the prompt's
 *     presence     l - p                            the same
 *     n-grams      never                            what would end one that was there before
 *     top_k        the k most likely
 *     top_p        the fewest whose probabilities reach top_p
 *     min_p        those at least min_p times as likely as the likeliest
 *
 * Temperature 0 is greedy: the largest logit after the penalties, the lowest id of equal
 * ones. A token whose logit is NaN or -infinity is never chosen. Zero in the fields from
 * min_p on turns them off.
 *
 * A choice depends on the logits, the seed, and what the sampler has accepted and chosen before;
 * neither on other texts nor on threads.
 *
 * Random numbers are PCG32 (M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient
 * Statistically Good Algorithms", 2014): a seed gives the same sequence on every machine.
 */
#ifndef XM_PLUGIN_TEXT_SAMPLER_H
#define XM_PLUGIN_TEXT_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    int last_n; /* how many accepted tokens the penalties see; ≤ 0: all */
    /* presence and frequency are those behind the prompt; last_n is 0 then */
    bool only_new;
    uint32_t no_repeat_ngram; /* tokens of a run that comes once; 0: any may come again */
};

struct
    xm_sampler; /* of a text: penalties and random numbers; used by one thread at a time */

/* What a choice needs besides, for any sampler of a vocabulary of at most this size: 24 bytes a
 * token. Of one thread at a time, which may use it for all its texts. NULL: no memory. */
struct xm_sampler_scratch;
struct xm_sampler_scratch *xm_sampler_scratch_create(size_t vocab_size);
void xm_sampler_scratch_free(struct xm_sampler_scratch *scratch); /* NULL is allowed */

enum xm_status xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                                 struct xm_sampler **out, struct xm_error *err);
void xm_sampler_free(struct xm_sampler *sampler); /* NULL is allowed */

/* Begins a text: forgets all accepted tokens, and accepts those of the prompt. */
enum xm_status xm_sampler_begin(struct xm_sampler *sampler, const int32_t *prompt,
                                size_t n, struct xm_error *err);

/* Tells the penalties of tokens: those of the prompt, then each one that was generated.
 * Ids outside of the vocabulary are ignored. Does nothing without a penalty. */
enum xm_status xm_sampler_accept(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                                 struct xm_error *err);

/* Forgets all accepted tokens. */
void xm_sampler_forget(struct xm_sampler *sampler);

/* These are not to be chosen by the next call of xm_sampler_next. Ids outside of the vocabulary are
 * ignored. */
enum xm_status xm_sampler_bar(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                              struct xm_error *err);

/* These tokens get -infinity. Ids outside of the vocabulary are ignored. */
void xm_bar_tokens(const int32_t *ids, size_t n, float *logits, size_t vocab_size);

/* What came behind the last n - 1 tokens of a text where they were before gets -infinity: no n
 * tokens come twice. 0: any may. */
void xm_bar_ngrams(const int32_t *text, size_t length, uint32_t n, float *logits,
                   size_t vocab_size);

/* Chooses from `vocab_size` logits. Allocates nothing. XM_INVALID when no token can be
 * chosen: all logits are NaN or -infinity. */
enum xm_status xm_sampler_next(struct xm_sampler *sampler,
                               struct xm_sampler_scratch *scratch, const float *logits,
                               int32_t *id, struct xm_error *err);

/* log(sum of exp(row)); finite where the row is a distribution. */
double xm_log_sum_exp(const float *row, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
