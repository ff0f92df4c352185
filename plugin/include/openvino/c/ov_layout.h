/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: what the dimensions of a tensor are called.
 */
#ifndef OPENVINO_C_OV_LAYOUT_H
#define OPENVINO_C_OV_LAYOUT_H

#include "openvino/c/ov_common.h"

typedef struct ov_layout ov_layout_t;

/* "NCHW": a letter a dimension; "[N,height,?,...]": names apart by commas, ? is any, ... any
 * number of them; "" is [...]. Capitals or not is the same. What is no name, and a name twice:
 * GENERAL_ERROR. */
OPENVINO_C_API(ov_status_e)
ov_layout_create(const char *layout_desc, ov_layout_t **layout);
OPENVINO_C_API(void) ov_layout_free(ov_layout_t *layout);
/* In brackets, for ov_free(): "[N,C,H,W]". NULL where there is no memory. */
OPENVINO_C_API(const char *) ov_layout_to_string(const ov_layout_t *layout);

#endif
