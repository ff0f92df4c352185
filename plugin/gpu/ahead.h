/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding ahead of the host: the device chooses the tokens of a batch of texts, and runs them
 * before the host knows them.
 *
 *     host      enqueue run 2 │ wait for choice 1 │ enqueue run 3 │ wait for choice 2 │ …
 *     device    run 1, choice 1 │ run 2, choice 2         │ run 3, choice 3          │ …
 *
 * Each run computes one token of each text, in the buffers of the previous run. A choice writes the
 * ids, positions and numbers of cached positions to the buffers from which the next run reads them
 * (primitives/choose). So the host writes to the device only when a sequence gets a new page. A
 * sequence may leave while a run is in the queue. That run is then the last one, and its tokens are
 * chosen for the remaining sequences. All functions are called in the thread of the request.
 */
#ifndef XM_PLUGIN_GPU_AHEAD_H
#define XM_PLUGIN_GPU_AHEAD_H

#include "plugin/gpu/request.h"
#include "plugin/kv/kv_sequence.h"
#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_ahead;

/* Builds the kernels that choose the likeliest token, if the device can choose tokens of this
 * program. Called when a model is compiled, so that the kernels are exported with it. */
enum xm_status xm_ahead_build(struct xm_program *p, uint32_t ids, uint32_t positions,
                              struct xm_error *err);
/* Creates *out for the request of a batch, which must outlive it. `ids` and `positions` are the
 * numbers of the request's inputs; positions UINT32_MAX: there is no such input. XM_UNSUPPORTED: no
 * token can be chosen on the device; the error message says why. */
enum xm_status xm_ahead_create(struct xm_request *r, uint32_t ids, uint32_t positions,
                               struct xm_ahead **out, struct xm_error *err);
void xm_ahead_destroy(struct xm_ahead *a); /* waits for the queue; NULL is allowed */
/* Builds the kernels that choose tokens as *how says. XM_UNSUPPORTED: the host chooses such tokens
 * faster, or a hook is set, which reads the operands of every step. */
enum xm_status xm_ahead_prepare(const struct xm_ahead *a,
                                const struct xm_token_choice *how, struct xm_error *err);
/* Implements xm_batch_ops.choose; sequences[i] is the sequence of c->list[i]. If the next run
 * cannot be enqueued, the call succeeds with c->is_running false: the caller then runs the tokens
 * in the ordinary way, which reports the cause. */
enum xm_status xm_ahead_choose(struct xm_ahead *a,
                               struct xm_kv_sequence *const *sequences,
                               struct xm_device_choices *c, struct xm_error *err);
/* Returns whether the choices in the queue are of exactly these n sequences, in this order, so that
 * the next call of xm_ahead_choose continues them. */
bool xm_ahead_decodes(const struct xm_ahead *a, struct xm_kv_sequence *const *sequences,
                      uint32_t n);
/* Implements xm_batch_ops.stop: waits for the queue, then drops sequence `s`; NULL: all of them. */
void xm_ahead_stop(struct xm_ahead *a, const struct xm_kv_sequence *s);

#ifdef __cplusplus
}
#endif
#endif
