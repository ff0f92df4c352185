/* SPDX-License-Identifier: Apache-2.0
 *
 * Dimensions with bounds: {n, n} is static, {-1, -1} may be any number.
 */
#ifndef OPENVINO_C_OV_DIMENSION_H
#define OPENVINO_C_OV_DIMENSION_H

#include "openvino/c/ov_common.h"

typedef struct ov_dimension {
    int64_t min;
    int64_t max;
} ov_dimension_t;

/* {0, 0} counts as dynamic. */
OPENVINO_C_API(bool) ov_dimension_is_dynamic(const ov_dimension_t dim);

#endif
