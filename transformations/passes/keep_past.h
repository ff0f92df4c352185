/* SPDX-License-Identifier: Apache-2.0
 *
 * For text generation: caches of keys and values that a model has as inputs and outputs become its
 * states.
 */
#ifndef XM_TRANSFORMATIONS_PASSES_KEEP_PAST_H
#define XM_TRANSFORMATIONS_PASSES_KEEP_PAST_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not part of the pipeline: it takes inputs and results away, so only callers that make text ask
 * for it. Failures in graph->err. */
bool xm_pass_keep_past(struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
