/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one text through a language model: takes token ids, returns logits, and keeps positions
 * between calls.
 *
 * If the model was compiled for sequences, the text is a sequence, which can share beginnings with
 * other texts. Otherwise the states of a request hold the text; the request is fed those of the
 * inputs input_ids, attention_mask, position_ids and beam_idx that the model has. Callers see no
 * difference.
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
/* Returns the logits of the last feed: rows x vocabulary of f32, the last row for the last token.
 * *rows is the number wanted, or fewer if the model returns fewer; 0: the last feed failed, or
 * there was none. Valid until the next feed. */
const float *xm_token_runner_logits(const struct xm_token_runner *r, uint64_t *rows,
                                    uint64_t *vocabulary);

/* Builds the kernels that xm_token_runner_choose needs for choices of this kind. */
void xm_token_runner_prepare(struct xm_token_runner *r,
                             const struct xm_token_choice *how);
/* Chooses the token after the last one on the device, which may enqueue its run before the host
 * knows it (xm_batch_ops.choose with one choice, whose sequence this function sets).
 * XM_UNSUPPORTED: the caller must choose from xm_token_runner_logits, which are unchanged. After a
 * success there are no logits. XM_NOT_FINITE as xm_token_runner_feed. */
enum xm_status xm_token_runner_choose(struct xm_token_runner *r,
                                      struct xm_device_choices *c, struct xm_error *err);
/* Drops the enqueued run of a chosen token. Call it before any other function that changes
 * positions. */
void xm_token_runner_stop(struct xm_token_runner *r);

/* The number of positions held. */
uint64_t xm_token_runner_past(const struct xm_token_runner *r);
/* Removes the positions from `past` on; all positions if the device cannot keep the others. */
void xm_token_runner_truncate(struct xm_token_runner *r, uint64_t past);

/* Call it while no positions are held: reuses positions of the beginning of ids[n] that other texts
 * have computed, at most n - 1. */
enum xm_status xm_token_runner_match(struct xm_token_runner *r, const int32_t *ids,
                                     uint64_t n, struct xm_error *err);

/* Returns the text's sequence for saving and loading while no token is running; the runner owns it.
 * NULL: the text is a request. */
struct xm_sequence *xm_token_runner_sequence(const struct xm_token_runner *r);

/* Runs a prompt of n tokens (at most XM_WARM_UP_TOKENS; 0: none) and one more token, and discards
 * them, because some drivers compile a kernel at its first launch. Failures are ignored: the next
 * run reports them. */
void xm_token_runner_warm_up(struct xm_compiled *c, uint64_t n);

/* Announces the final number of positions, so that the cache reserves memory for exactly as
 * many. */
void xm_token_runner_expect(const struct xm_token_runner *r, uint64_t positions);

/* The infer request, to cancel it, check its steps or read statistics. Running it directly would
 * corrupt the text. */
struct xm_infer *xm_token_runner_request(const struct xm_token_runner *r);

/* Whether row[n] can be sampled from: false if a value is NaN or +infinity, or if all are
 * -infinity, which excludes a token. Any thread may call it. */
bool xm_logits_are_sound(const float *row, uint64_t n);
/* Fails with XM_NOT_FINITE for the logits of a position; the sentence suggests what to do. */
enum xm_status xm_logits_fail(struct xm_compiled *c, uint64_t position,
                              struct xm_error *err);
/* Calls xm_logits_fail if row[vocabulary] is not sound. */
enum xm_status xm_logits_check(struct xm_compiled *c, const float *row,
                               uint64_t vocabulary, uint64_t position,
                               struct xm_error *err);
/* The last dimension of the logits, padding included; ids must be below it. UINT64_MAX: unknown. */
uint64_t xm_compiled_vocabulary(const struct xm_compiled *c);

#ifdef __cplusplus
}
#endif
#endif
