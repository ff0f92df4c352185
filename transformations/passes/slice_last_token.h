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

/* Changes results from [B,T,V] to [B,1,V], the last token's. Returns whether the graph changed;
 * failures in graph->err. Not part of the pipeline: callers that want only the last row run it. */
bool xm_pass_slice_last_token(struct xm_graph *g);
/* As xm_pass_slice_last_token, for the tokens that a new input XM_SAMPLED_TOKENS, [samples] i64,
 * lists: results become [B,samples,V]. If the graph does not change, there is no new input. */
#define XM_SAMPLED_TOKENS "sampled_tokens_indices"
bool xm_pass_gather_sampled_tokens(struct xm_graph *g);

/* Returns the product [B,T,V] from which v is computed by elementwise ops with constants, each with
 * one user; NULL: there is none. */
struct xm_node *xm_language_head(struct xm_value *v);
/* Builds x[:, sampled_tokens_indices, :] before `place`; adds the input if the graph lacks it.
 * NULL: a failure in graph->err. */
struct xm_value *xm_sampled_rows(struct xm_graph *g, struct xm_value *x,
                                 struct xm_node *place);

#ifdef __cplusplus
}
#endif
#endif
