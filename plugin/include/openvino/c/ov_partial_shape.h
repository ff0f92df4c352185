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

/* A lower bound of -1 is 0, an upper one of INT64_MAX is none. INVALID_C_PARAM: a negative rank,
 * min > max, or an upper bound of -1 but for {-1, -1}. */
OPENVINO_C_API(ov_status_e)
ov_partial_shape_create(const int64_t rank, const ov_dimension_t *dims,
                        ov_partial_shape_t *partial_shape_obj);
/* The rank may be {-1, -1}; then `dims` is not read. */
OPENVINO_C_API(ov_status_e)
ov_partial_shape_create_dynamic(const ov_rank_t rank, const ov_dimension_t *dims,
                                ov_partial_shape_t *partial_shape_obj);
OPENVINO_C_API(ov_status_e)
ov_partial_shape_create_static(const int64_t rank, const int64_t *dims,
                               ov_partial_shape_t *partial_shape_obj);
/* Resets the struct; NULL is allowed. */
OPENVINO_C_API(void) ov_partial_shape_free(ov_partial_shape_t *partial_shape);
/* PARAMETER_MISMATCH when anything is dynamic; the shape is empty then where the rank is known. */
OPENVINO_C_API(ov_status_e)
ov_partial_shape_to_shape(const ov_partial_shape_t partial_shape, ov_shape_t *shape);
OPENVINO_C_API(ov_status_e)
ov_shape_to_partial_shape(const ov_shape_t shape, ov_partial_shape_t *partial_shape);
OPENVINO_C_API(bool) ov_partial_shape_is_dynamic(const ov_partial_shape_t partial_shape);
/* "{1,20,300}", "{?,1..20,300}", "?" for a dynamic rank; for ov_free(). */
OPENVINO_C_API(const char *)
ov_partial_shape_to_string(const ov_partial_shape_t partial_shape);

#endif
