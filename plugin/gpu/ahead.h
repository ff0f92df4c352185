/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding ahead of the host: the device chooses the tokens of a batch of texts, and runs them
 * before the host knows them.
 *
 *     host      enqueue run 2 │ wait for choice 1 │ enqueue run 3 │ wait for choice 2 │ …
 *     device    run 1, choice 1 │ run 2, choice 2         │ run 3, choice 3          │ …
 *
 * A run has a token of each text, and the buffers of the one before it: a choice writes ids,
 * positions and numbers of cached positions to where the run reads them (primitives/choose). So a
 * step needs no write by the host but where a sequence gets a page. A sequence may leave while the
 * run goes on, which is then the last one: its tokens are chosen as before, but for that sequence.
 * The thread of the request.
 */
#ifndef XM_PLUGIN_GPU_AHEAD_H
#define XM_PLUGIN_GPU_AHEAD_H

#include "plugin/gpu/kv/kv_sequence.h"
#include "plugin/gpu/request.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_ahead;

/* Builds the kernels that choose the likeliest token, if the program can have such: so they are
 * built when a model is compiled, and exported with it. */
enum xm_status xm_ahead_build(struct xm_program *p, uint32_t ids, uint32_t positions,
                              struct xm_error *err);
/* For the request of a batch, which must outlive it; `ids` and `positions` are its inputs,
 * `positions` UINT32_MAX if there is none. XM_UNSUPPORTED: no token can be chosen on the
 * device; the sentence says why. */
enum xm_status xm_ahead_create(struct xm_request *r, uint32_t ids, uint32_t positions,
                               struct xm_ahead **out, struct xm_error *err);
void xm_ahead_destroy(struct xm_ahead *a); /* waits; NULL is allowed */
/* Builds the kernels for choices of this kind alone. XM_UNSUPPORTED: the host makes them faster. */
enum xm_status xm_ahead_prepare(const struct xm_ahead *a,
                                const struct xm_token_choice *how, struct xm_error *err);
/* As xm_batch_ops.choose, for the sequences [c->n] of the list's choices. What cannot be enqueued
 * is left to the caller, who runs the tokens in the ordinary way and learns the cause there:
 * is_running is false then. */
enum xm_status xm_ahead_choose(struct xm_ahead *a,
                               struct xm_kv_sequence *const *sequences,
                               struct xm_device_choices *c, struct xm_error *err);
/* Whether choices of exactly these sequences are in the queue: the next ones go on with them. */
bool xm_ahead_decodes(const struct xm_ahead *a, struct xm_kv_sequence *const *sequences,
                      uint32_t n);
/* As xm_batch_ops.stop. */
void xm_ahead_stop(struct xm_ahead *a, const struct xm_kv_sequence *s);

#ifdef __cplusplus
}
#endif
#endif
