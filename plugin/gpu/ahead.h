/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding ahead of the host: the device chooses a token and runs it before the host knows it.
 *
 *     host      enqueue run 2 │ wait for choice 1 │ enqueue run 3 │ wait for choice 2 │ …
 *     device    run 1, choice 1 │ run 2, choice 2         │ run 3, choice 3          │ …
 *
 * A run has the buffers of the one before it: a choice writes id, position and number of cached
 * positions to where the run reads them (primitives/choose). So a token needs no write by the host
 * but where its sequence gets a page. One sequence at a time; the thread of its request.
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
/* Kernels for choices of this kind. XM_UNSUPPORTED: the host makes them faster. */
enum xm_status xm_ahead_prepare(struct xm_ahead *a, const struct xm_token_choice *how,
                                struct xm_error *err);
/* As xm_batch_ops.choose, for choices of the kind that was prepared. What cannot be enqueued is
 * left to the caller, who runs the token in the ordinary way and learns the cause there: is_running
 * is false then. */
enum xm_status xm_ahead_choose(struct xm_ahead *a, struct xm_kv_sequence *s,
                               struct xm_device_choice *c, struct xm_error *err);
/* Whether choices of the sequence are in the queue: the next one goes on with them. */
bool xm_ahead_decodes(const struct xm_ahead *a, const struct xm_kv_sequence *s);
void xm_ahead_stop(struct xm_ahead *a); /* as xm_batch_ops.stop */

#ifdef __cplusplus
}
#endif
#endif
