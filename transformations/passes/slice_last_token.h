/* SPDX-License-Identifier: Apache-2.0
 *
 * For text generation: only the last position's row of per-token results is computed.
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

#ifdef __cplusplus
}
#endif
#endif
