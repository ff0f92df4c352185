/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the next token of a text from a row of logits.
 *
 *     logit_bias -> penalties -> dry -> n-grams, bad_words -> top_n_sigma -> top_k
 *     -> softmax(logits / temperature) -> typical_p -> top_p -> min_p -> xtc -> draw
 *
 * The steps apply in this order. It is that of llama.cpp's default chain except for the
 * temperature, which comes last there: here, as in transformers and vLLM, typical_p, top_p, min_p
 * and xtc work on the probabilities with which tokens are drawn. Each step works on the tokens that
 * the step before it kept, with their probabilities renormalised. l is a token's logit, p its
 * probability:
 *
 *     logit_bias   l + bias; at -100 or below l = -infinity
 *     repetition   l > 0 ? l * (1/r) : l * r   tokens among the last `last_n` accepted ones
 *     frequency    l - f * (times accepted)    the same tokens; with only_new, not the prompt's
 *     presence     l - p                       as frequency
 *     dry          dry.h
 *     n-grams      l = -infinity               tokens that would repeat an n-gram of the text
 *     bad_words    l = -infinity               tokens that would complete one of the sequences
 *     top_n_sigma  keeps l >= largest - n * standard deviation of all finite l (C. Tang et al.,
 *                  "Top-n-sigma: Not All Logits Are You Need", 2024)
 *     top_k        keeps the k most likely tokens
 *     typical_p    keeps the fewest tokens with the least |-log p - entropy| that sum to typical_p
 *                  (C. Meister et al., "Locally Typical Sampling", 2022)
 *     top_p        keeps the fewest most likely tokens whose probabilities sum to top_p
 *     min_p        keeps the tokens at least min_p times as likely as the most likely one
 *     xtc          with xtc_probability, of the tokens with p >= xtc_threshold leaves out all but
 *                  the least likely ("exclude top choices", P. E. Weidmann, text-generation-webui,
 *                  2024)
 *     mirostat     in the place of top_k to xtc: keeps the tokens with -log2 p <= m, or the
 *                  likeliest one; m begins as 2 tau, and each choice moves it by
 *                  eta * (tau + log2 of p among the kept) (S. Basu et al., "Mirostat: A Neural Text
 *                  Decoding Algorithm that Directly Controls Perplexity", 2021; version 2)
 *
 * Temperature 0 is greedy: it chooses the largest logit after the penalties, of equal ones the
 * lowest id. A token whose logit is NaN or -infinity is never chosen.
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

#include "plugin/text/sampling.h"
#include "runtime/operations/token_choice.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state of one text: accepted tokens and the position in the random sequence. Used by one
 * thread at a time. */
struct xm_sampler;

/* Scratch memory of a choice, for any sampler with at most this vocabulary size: 28 bytes a token.
 * Used by one thread at a time, which may share it among its texts. xm_sampler_scratch_create
 * returns NULL if there is no memory. */
struct xm_sampler_scratch;
struct xm_sampler_scratch *xm_sampler_scratch_create(size_t vocab_size);
void xm_sampler_scratch_free(struct xm_sampler_scratch *scratch); /* NULL is allowed */

/* Copies *sampling and its lists. XM_INVALID: a parameter is out of range, or a token of logit_bias
 * is outside of the vocabulary; the error message names it. */
enum xm_status xm_sampler_create(const struct xm_sampling *sampling, size_t vocab_size,
                                 struct xm_sampler **out, struct xm_error *err);
void xm_sampler_free(struct xm_sampler *sampler); /* NULL is allowed */

/* Begins a text: forgets all accepted tokens, then accepts the prompt's `n` tokens. */
enum xm_status xm_sampler_begin(struct xm_sampler *sampler, const int32_t *prompt,
                                size_t n, struct xm_error *err);

/* Appends `n` tokens to the text, for the parameters that depend on it. Call it for each generated
 * token. Ids outside of the vocabulary are ignored. Does nothing if no parameter depends on the
 * text. */
enum xm_status xm_sampler_accept(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                                 struct xm_error *err);

/* Forgets all accepted tokens, and resets mirostat's m. */
void xm_sampler_forget(struct xm_sampler *sampler);

/* Forbids these tokens in the next call of xm_sampler_next only. Ids outside of the vocabulary are
 * ignored. */
enum xm_status xm_sampler_bar(struct xm_sampler *sampler, const int32_t *ids, size_t n,
                              struct xm_error *err);

/* Allows in the next call of xm_sampler_next only the tokens whose bit is set: token i < 64 * n is
 * bit i % 64 of bits[i / 64]. The bits are not copied. */
void xm_sampler_allow(struct xm_sampler *sampler, const uint64_t *bits, size_t n);

/* Sets the logits of these tokens to -infinity. Ids outside of the vocabulary are ignored. */
void xm_bar_tokens(const int32_t *ids, size_t n, float *logits, size_t vocab_size);

/* Sets to -infinity the logits of all tokens that would make an n-gram of `text` (`length` tokens)
 * occur a second time: those that followed an earlier occurrence of its last n - 1 tokens. n = 0
 * changes nothing. */
void xm_bar_ngrams(const int32_t *text, size_t length, uint32_t n, float *logits,
                   size_t vocab_size);

/* Chooses a token from logits[vocab_size], which stay as they are; does not accept it. Allocates
 * nothing. XM_INVALID: all logits are NaN or -infinity. */
enum xm_status xm_sampler_next(struct xm_sampler *sampler,
                               struct xm_sampler_scratch *scratch, const float *logits,
                               int32_t *id, struct xm_error *err);

/* Sets *out to the parameters for a device that chooses the first token of a text. False: devices
 * do not support a parameter, so xm_sampler_next must choose. */
bool xm_sampling_on_device(const struct xm_sampling *s, size_t vocab_size,
                           struct xm_token_choice *out);
/* Sets *out to the parameters for a device that chooses the next token, and *seen to the sampler's
 * token counts, which are valid until it accepts a token; the device itself counts the tokens that
 * it chooses. False: xm_sampler_next must choose, because devices do not support a parameter or
 * xm_sampler_bar has forbidden tokens for this choice. Does not look at xm_sampler_allow. */
bool xm_sampler_on_device(const struct xm_sampler *sampler, struct xm_token_choice *out,
                          struct xm_seen_tokens *seen);
/* Call it after a device has chosen a token in place of xm_sampler_next: advances the random
 * numbers. */
void xm_sampler_skip(struct xm_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
