/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks: an ov_dimension_t that bounds the number of dimensions.
 */
#ifndef OPENVINO_C_OV_RANK_H
#define OPENVINO_C_OV_RANK_H

#include "openvino/c/ov_dimension.h"

typedef ov_dimension_t ov_rank_t;

/* Whether the rank is not fixed, by the rule of ov_dimension_is_dynamic. */
OPENVINO_C_API(bool) ov_rank_is_dynamic(const ov_rank_t rank);

#endif
