/* SPDX-License-Identifier: Apache-2.0
 *
 * For embeddings: makes a language model return its hidden states instead of its logits.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_GATHER_HIDDEN_STATES_H
#define XM_TRANSFORMATIONS_PASSES_GATHER_HIDDEN_STATES_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces all results by one, f32 [B,samples,H] named "last_hidden_state", which has the hidden
 * states of the tokens listed in the new input sampled_tokens_indices (slice_last_token.h). Not
 * part of the pipeline, because it changes the results. False: a failure in graph->err;
 * XM_UNSUPPORTED: no hidden states were found. */
bool xm_pass_gather_hidden_states(struct xm_graph *g);
/* Whether the model in its file already returns hidden states and no logits. */
bool xm_graph_gives_hidden_states(const struct xm_graph *g);
/* The number of token ids: rows of the smallest table that input_ids index. UINT64_MAX: no table
 * was found. */
uint64_t xm_graph_vocabulary(const struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
