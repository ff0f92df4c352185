/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one text through a language model: token ids in, logits out, positions kept between calls.
 *
 * The text is a sequence where the model was compiled for sequences; then it shares beginnings with
 * other texts. Otherwise it is the states of a request, which is fed the inputs that the model has
 * of input_ids, attention_mask, position_ids and beam_idx. Callers do not see the difference.
 */
#ifndef XM_PLUGIN_PIPELINE_TOKEN_RUNNER_H
#define XM_PLUGIN_PIPELINE_TOKEN_RUNNER_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_token_runner; /* one thread at a time */

enum xm_status xm_token_runner_create(struct xm_compiled *compiled,
                                      struct xm_token_runner **out, struct xm_error *err);
void xm_token_runner_destroy(struct xm_token_runner *r); /* NULL is allowed */

/* Appends ids[n] to the positions held and computes the logits of the last `wanted` (<= n) ones.
 * XM_NOT_FINITE: a row of the logits is not a distribution; the sentence names the position and
 * what to do. */
enum xm_status xm_token_runner_feed(struct xm_token_runner *r, const int32_t *ids,
                                    uint64_t n, uint64_t wanted, struct xm_error *err);
/* The logits of the last feed: rows x vocabulary of f32, the last row that of the last token. There
 * are as many as were wanted, or as many as the model gives; 0: the last feed failed, or there was
 * none. Valid until the next feed. */
const float *xm_token_runner_logits(const struct xm_token_runner *r, uint64_t *rows,
                                    uint64_t *vocabulary);

/* Makes ready what xm_token_runner_choose needs for choices of this kind. */
void xm_token_runner_prepare(struct xm_token_runner *r,
                             const struct xm_token_choice *how);
/* Chooses the token behind the last one on the device, whose run may begin before the host knows it
 * (xm_batch_ops.choose, of one choice, whose sequence this sets). XM_UNSUPPORTED: the caller
 * chooses from xm_token_runner_logits, which are as they were; after a success there are none.
 * XM_NOT_FINITE as xm_token_runner_feed. */
enum xm_status xm_token_runner_choose(struct xm_token_runner *r,
                                      struct xm_device_choices *c, struct xm_error *err);
/* Drops the run of a token that is running. Any other call that changes positions is to come after
 * it. */
void xm_token_runner_stop(struct xm_token_runner *r);

/* The number of positions held. */
uint64_t xm_token_runner_past(const struct xm_token_runner *r);
/* Forgets positions from `past` on; all of them where the device cannot keep the rest. */
void xm_token_runner_truncate(struct xm_token_runner *r, uint64_t past);

/* While no positions are held: takes over positions of the beginning of ids[n] that other texts
 * have computed, at most n - 1. */
enum xm_status xm_token_runner_match(struct xm_token_runner *r, const int32_t *ids,
                                     uint64_t n, struct xm_error *err);

/* The sequence of its text, to save and load it while no token is running; owned by the runner.
 * NULL: the text is a request. */
struct xm_sequence *xm_token_runner_sequence(const struct xm_token_runner *r);

/* Runs a prompt of n tokens (at most XM_WARM_UP_TOKENS; 0: none) and one more token, and forgets
 * them, because some drivers compile at the first launch of a kernel. Failures are ignored: the
 * next run reports them. */
void xm_token_runner_warm_up(struct xm_compiled *c, uint64_t n);

/* Announces `positions`: the cache reserves memory for exactly as many. */
void xm_token_runner_expect(const struct xm_token_runner *r, uint64_t positions);

/* The infer request, to cancel it, check its steps or read statistics. Running it directly would
 * corrupt the text. */
struct xm_infer *xm_token_runner_request(const struct xm_token_runner *r);

/* Whether row[n] is a distribution. -infinity excludes a token. False where all tokens are
 * excluded, or one is +infinity or NaN. Any thread may call it. */
bool xm_logits_are_sound(const float *row, uint64_t n);
/* XM_NOT_FINITE: those of a position are none; the sentence says what to do. */
enum xm_status xm_logits_fail(struct xm_compiled *c, uint64_t position,
                              struct xm_error *err);
/* Both: fails if row[vocabulary] is no distribution. */
enum xm_status xm_logits_check(struct xm_compiled *c, const float *row,
                               uint64_t vocabulary, uint64_t position,
                               struct xm_error *err);
/* The last dimension of the logits, padding included; ids must be below it. UINT64_MAX: unknown. */
uint64_t xm_compiled_vocabulary(const struct xm_compiled *c);

#ifdef __cplusplus
}
#endif
#endif
