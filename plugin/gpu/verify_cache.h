/* SPDX-License-Identifier: Apache-2.0
 *
 * For `xemoe verify`: reads the device's KV cache.
 */
#ifndef XM_PLUGIN_GPU_VERIFY_CACHE_H
#define XM_PLUGIN_GPU_VERIFY_CACHE_H

#include "plugin/gpu/request.h"
#include "transformations/graph/evaluate.h"

/* Reads the keys (out[0]) and values (out[1]) that the cache holds for a step of attention that has
 * just run. They are f32 [B,S,Hkv,D], the shape of the reference's states. Rows of i8 and u4 are
 * decoded, and the rotation with which they were stored is undone. Pages of positions that have
 * left a sliding window may have been released: their rows are copied from `reference`, which has
 * all positions. The caller owns out[i], also after a failure. */
enum xm_status xm_verify_cache(struct xm_request *r, const struct xm_step *step,
                               const struct xm_state_store *reference,
                               struct xm_tensor *out[2], struct xm_error *err);

#endif
