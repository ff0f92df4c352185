/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of values: an element type, and a shape of symbolic dimensions.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TYPE_H
#define XM_TRANSFORMATIONS_GRAPH_TYPE_H

#include "runtime/util/element.h"
#include "transformations/graph/dim.h"

enum { XM_MAX_RANK = 8 };

struct xm_shape {
    uint32_t rank;
    struct xm_dim dim[XM_MAX_RANK];
};

struct xm_type {
    enum xm_element element;
    struct xm_shape shape;
};

#endif
