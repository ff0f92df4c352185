/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a model's family from its graph alone, for folders without a config.json.
 */
#ifndef XM_PLUGIN_MODEL_FAMILY_H
#define XM_PLUGIN_MODEL_FAMILY_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the model_type that config.json would have, a static text. NULL: several families have
 * such layers. `g` is the graph after the passes, where attention and experts are one operation
 * each. */
const char *xm_model_family(const struct xm_graph *g);

#ifdef __cplusplus
}
#endif
#endif
