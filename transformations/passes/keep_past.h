/* SPDX-License-Identifier: Apache-2.0
 *
 * For text generation: turns caches of keys and values that are inputs and outputs of a model into
 * states.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_KEEP_PAST_H
#define XM_TRANSFORMATIONS_PASSES_KEEP_PAST_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not part of the pipeline, because it removes inputs and results: callers that generate text run
 * it. Failures in graph->err. */
bool xm_pass_keep_past(struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
