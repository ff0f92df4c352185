/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the kind of an attention mask that the graph computes.
 *
 * Exporters write masks in dozens of ways, which change with every version. But a mask depends only
 * on sizes and on the key mask (this is checked), so it is recognised by its values: the host
 * reference evaluates it for small batches with padding, for one and for several tokens, and for
 * sizes around every constant that occurs in it (a window shows only for longer sequences). The
 * mask has a known kind if all elements of all these probes agree with it; else the mask stays an
 * explicit operand, which every kernel accepts.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_MASK_KIND_H
#define XM_TRANSFORMATIONS_PASSES_MASK_KIND_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mask_kind {
    bool known;
    bool causal;
    int64_t window; /* 0: none                                                  */
    struct xm_value *key_mask; /* the parameter [batch, past + tokens]; NULL: none */
};

/* Finds the kind of `mask` [B|1,1,T,S], float (0 or very negative) or boolean. Fails only without
 * memory: a mask that the probes cannot compute has an unknown kind. */
enum xm_status xm_mask_classify(const struct xm_graph *g, struct xm_value *mask,
                                struct xm_mask_kind *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif

#endif
