/* SPDX-License-Identifier: Apache-2.0
 *
 * For text generation: only the rows of per-token results that somebody reads are computed.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_SLICE_LAST_TOKEN_H
#define XM_TRANSFORMATIONS_PASSES_SLICE_LAST_TOKEN_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not part of the pipeline: it changes results' shapes from [B,T,V] to [B,1,V], so only
 * callers that want that ask for it. Failures in graph->err. */
bool xm_pass_slice_last_token(struct xm_graph *g);
/* The same for the tokens that a new input says, [samples] i64: results become [B,samples,V]. Where
 * it makes no progress there is no such input. */
#define XM_SAMPLED_TOKENS "sampled_tokens_indices"
bool xm_pass_gather_sampled_tokens(struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
