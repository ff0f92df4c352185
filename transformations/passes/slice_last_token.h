/* SPDX-License-Identifier: Apache-2.0
 *
 * For text generation: computes only those rows of per-token results that the caller reads.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_SLICE_LAST_TOKEN_H
#define XM_TRANSFORMATIONS_PASSES_SLICE_LAST_TOKEN_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not part of the pipeline, because it changes results from [B,T,V] to [B,1,V]: callers that want
 * the last row alone run it. Failures in graph->err. */
bool xm_pass_slice_last_token(struct xm_graph *g);
/* The same for the tokens listed by a new input [samples] i64: results become [B,samples,V].
 * Without progress there is no new input. */
#define XM_SAMPLED_TOKENS "sampled_tokens_indices"
bool xm_pass_gather_sampled_tokens(struct xm_graph *g);

/* The product [B,T,V] that v is computed from by elementwise steps with constants, each with one
 * user; NULL: there is none. */
struct xm_node *xm_language_head(struct xm_value *v);
/* Builds x[:, sampled_tokens_indices, :] before `place`; the input is made where the graph lacks
 * it. NULL: failed, the cause is in graph->err. */
struct xm_value *xm_sampled_rows(struct xm_graph *g, struct xm_value *x,
                                 struct xm_node *place);

#ifdef __cplusplus
}
#endif
#endif
