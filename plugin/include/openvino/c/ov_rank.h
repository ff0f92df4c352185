/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks: a dimension that counts dimensions.
 */
#ifndef OPENVINO_C_OV_RANK_H
#define OPENVINO_C_OV_RANK_H

#include "openvino/c/ov_dimension.h"

typedef ov_dimension_t ov_rank_t;

/* As ov_dimension_is_dynamic. */
OPENVINO_C_API(bool) ov_rank_is_dynamic(const ov_rank_t rank);

#endif
