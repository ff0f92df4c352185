/* SPDX-License-Identifier: Apache-2.0
 *
 * Static shapes.
 */
#ifndef OPENVINO_C_OV_SHAPE_H
#define OPENVINO_C_OV_SHAPE_H

#include "openvino/c/ov_common.h"

typedef struct {
    int64_t rank;
    int64_t *dims;
} ov_shape_t;

/* Copies `rank` dimensions; with NULL they are allocated for the caller to fill. A rank
 * below 1 or a negative dimension is INVALID_C_PARAM. */
OPENVINO_C_API(ov_status_e)
ov_shape_create(const int64_t rank, const int64_t *dims, ov_shape_t *shape);
/* Sets {0, NULL}; NULL is INVALID_C_PARAM. */
OPENVINO_C_API(ov_status_e) ov_shape_free(ov_shape_t *shape);

#endif
