/* SPDX-License-Identifier: Apache-2.0
 *
 * For `xemoe verify`: what the device's KV cache holds.
 */
#ifndef XM_PLUGIN_GPU_VERIFY_CACHE_H
#define XM_PLUGIN_GPU_VERIFY_CACHE_H

#include "plugin/gpu/request.h"
#include "transformations/graph/evaluate.h"

/* Keys and values of a step of attention that has just run, as states of the reference,
 * [B,S,Hkv,D], but of what its layer's cache holds: rows of few bits are unpacked and rotated back.
 * Positions that no token of the run sees may have been given up: their rows are those of
 * `reference`, which has all of them. out[i] are the caller's, also after a failure. */
enum xm_status xm_verify_cache(struct xm_request *r, const struct xm_step *step,
                               const struct xm_state_store *reference,
                               struct xm_tensor *out[2], struct xm_error *err);

#endif
