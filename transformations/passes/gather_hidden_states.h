/* SPDX-License-Identifier: Apache-2.0
 *
 * For embeddings: makes a language model give its hidden states in place of its logits.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_GATHER_HIDDEN_STATES_H
#define XM_TRANSFORMATIONS_PASSES_GATHER_HIDDEN_STATES_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not part of the pipeline, because it replaces all results by one, f32 [B,samples,H] named
 * "last_hidden_state". The new input sampled_tokens_indices lists its tokens
 * (slice_last_token.h). False: a failure in graph->err; XM_UNSUPPORTED: no hidden states were
 * found. */
bool xm_pass_gather_hidden_states(struct xm_graph *g);
/* Whether the model, as its file has it, gives hidden states and no logits. */
bool xm_graph_gives_hidden_states(const struct xm_graph *g);
/* The number of token ids: rows of the smallest table that input_ids index. UINT64_MAX: no such
 * table was found. */
uint64_t xm_graph_vocabulary(const struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
