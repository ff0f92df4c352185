/* SPDX-License-Identifier: Apache-2.0
 *
 * Token ids through a language model: ids in, logits out, and how many positions are held.
 *
 * One text: a sequence of the compiled model, where it has been compiled for those, which shares
 * beginnings with others; else the states of a request, which is fed input_ids, attention_mask,
 * position_ids and beam_idx as exported language models name them (inputs that a model does not
 * have are left out). This is all that a session knows of either.
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

/* Feeds tokens behind those that are held; of the last `wanted` (<= n) logits are wanted.
 * XM_NOT_FINITE: a row of the logits is not a distribution; the sentence names the position and
 * what to do. */
enum xm_status xm_token_runner_feed(struct xm_token_runner *r, const int32_t *ids,
                                    uint64_t n, uint64_t wanted, struct xm_error *err);
/* The logits of the last feed: rows x vocabulary of f32, the last row that of the last token. There
 * are as many as were wanted, or as many as the model gives; 0: the last feed failed, or there was
 * none. Valid until the next feed. */
const float *xm_token_runner_logits(const struct xm_token_runner *r, uint64_t *rows,
                                    uint64_t *vocabulary);

/* Positions that are held. */
uint64_t xm_token_runner_past(const struct xm_token_runner *r);
/* Forgets those from `past` on; where the device cannot, all. */
void xm_token_runner_truncate(struct xm_token_runner *r, uint64_t past);

/* Where none are held: takes over those of the beginning of these ids that others have computed,
 * and one is left at least. */
enum xm_status xm_token_runner_match(struct xm_token_runner *r, const int32_t *ids,
                                     uint64_t n, struct xm_error *err);

/* Runs a prompt of n tokens, at most XM_WARM_UP_TOKENS (0: none), and a token behind it, of which
 * nothing stays: drivers compile more at first launches. A failure is left to the next run. */
void xm_token_runner_warm_up(struct xm_compiled *c, uint64_t n);

/* So many positions will come: the cache takes memory for them, and no more. */
void xm_token_runner_expect(const struct xm_token_runner *r, uint64_t positions);

/* For those who cancel it, check it, or ask what it cost; who else uses it disturbs the text. */
struct xm_infer *xm_token_runner_request(const struct xm_token_runner *r);

/* Whether a row of logits is a distribution. -infinity is a token that the model excludes; all
 * tokens excluded, +infinity and NaN make it none. From any thread. */
bool xm_logits_are_sound(const float *row, uint64_t n);
/* The same as a status; XM_NOT_FINITE names its position and what to do. */
enum xm_status xm_logits_check(struct xm_compiled *c, const float *row,
                               uint64_t vocabulary, uint64_t position,
                               struct xm_error *err);
/* The last dimension of the logits, which ids lie below (padding rows included); UINT64_MAX: not
 * known. */
uint64_t xm_compiled_vocabulary(const struct xm_compiled *c);

#ifdef __cplusplus
}
#endif
#endif
