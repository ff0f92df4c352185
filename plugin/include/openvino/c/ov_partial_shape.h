/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes with unknown dimensions or rank. Results are freed with ov_partial_shape_free().
 */
#ifndef OPENVINO_C_OV_PARTIAL_SHAPE_H
#define OPENVINO_C_OV_PARTIAL_SHAPE_H

#include "openvino/c/ov_dimension.h"
#include "openvino/c/ov_rank.h"
#include "openvino/c/ov_shape.h"

typedef struct ov_partial_shape {
    ov_rank_t rank;
    ov_dimension_t *dims;
} ov_partial_shape_t;

/* Creates a shape of `rank` dimensions. A lower bound of -1 counts as 0, an upper bound of
 * INT64_MAX as no bound. INVALID_C_PARAM: a negative rank, min > max, or an upper bound of -1 in a
 * dimension other than {-1, -1}. */
OPENVINO_C_API(ov_status_e)
ov_partial_shape_create(const int64_t rank, const ov_dimension_t *dims,
                        ov_partial_shape_t *partial_shape_obj);
/* As ov_partial_shape_create, but the rank may be {-1, -1}: then `dims` is not read. */
OPENVINO_C_API(ov_status_e)
ov_partial_shape_create_dynamic(const ov_rank_t rank, const ov_dimension_t *dims,
                                ov_partial_shape_t *partial_shape_obj);
OPENVINO_C_API(ov_status_e)
ov_partial_shape_create_static(const int64_t rank, const int64_t *dims,
                               ov_partial_shape_t *partial_shape_obj);
/* Frees the dimensions and sets the struct to a scalar's shape. NULL is allowed. */
OPENVINO_C_API(void) ov_partial_shape_free(ov_partial_shape_t *partial_shape);
/* PARAMETER_MISMATCH: the rank or a dimension is dynamic; *shape becomes {0, NULL} if only
 * dimensions are. */
OPENVINO_C_API(ov_status_e)
ov_partial_shape_to_shape(const ov_partial_shape_t partial_shape, ov_shape_t *shape);
OPENVINO_C_API(ov_status_e)
ov_shape_to_partial_shape(const ov_shape_t shape, ov_partial_shape_t *partial_shape);
OPENVINO_C_API(bool) ov_partial_shape_is_dynamic(const ov_partial_shape_t partial_shape);
/* Returns "{1,20,300}", "{?,1..20,300}", or "?" for a dynamic rank. Free it with ov_free(). NULL:
 * the dimensions are missing, or no memory. */
OPENVINO_C_API(const char *)
ov_partial_shape_to_string(const ov_partial_shape_t partial_shape);

#endif
