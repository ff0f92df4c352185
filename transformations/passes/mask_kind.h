/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind of an attention mask that the graph computes.
 *
 * Exporters spell masks in dozens of ways, and change the spelling with every version. A
 * mask depends on nothing but sizes and the key mask (that is checked), so it is
 * recognised by what it computes: the host reference evaluates it for small batches with
 * padding, for one and for several tokens, and around every constant that occurs in it (a
 * window shows only beyond its size). It is one of the known kinds when every probe
 * agrees in every element; else the mask stays an explicit operand, which every kernel
 * accepts.
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

/* `mask` is [B|1,1,T,S], float (0 or very negative) or boolean. Fails only without memory: a mask
 * that the probes cannot compute is of unknown kind. */
enum xm_status xm_mask_classify(const struct xm_graph *g, struct xm_value *mask,
                                struct xm_mask_kind *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif

#endif
