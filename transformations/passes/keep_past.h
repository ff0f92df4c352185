/* SPDX-License-Identifier: Apache-2.0
 *
 * For text generation: turns KV caches that are inputs and outputs of a model into states.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_KEEP_PAST_H
#define XM_TRANSFORMATIONS_PASSES_KEEP_PAST_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether the graph changed; failures in graph->err. Not part of the pipeline, because it
 * removes inputs and results: callers that generate text run it. */
bool xm_pass_keep_past(struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
