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

/* Creates a shape of `rank` dimensions and copies `dims`; with NULL the caller fills in the
 * dimensions. INVALID_C_PARAM: a rank below 1, or a negative dimension. */
OPENVINO_C_API(ov_status_e)
ov_shape_create(const int64_t rank, const int64_t *dims, ov_shape_t *shape);
/* Frees the dimensions and sets {0, NULL}. INVALID_C_PARAM: `shape` is NULL. */
OPENVINO_C_API(ov_status_e) ov_shape_free(ov_shape_t *shape);

#endif
