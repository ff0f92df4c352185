/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: the names of a tensor's dimensions, such as N, C, H and W.
 */
#ifndef OPENVINO_C_OV_LAYOUT_H
#define OPENVINO_C_OV_LAYOUT_H

#include "openvino/c/ov_common.h"

typedef struct ov_layout ov_layout_t;

/* Parses a layout. "NCHW": one letter for each dimension. "[N,height,?,...]": names separated by
 * commas; "?" stands for any dimension, "..." for any number of them. "" means "[...]". Letter case
 * is ignored. GENERAL_ERROR: an illegal name, or the same name twice. */
OPENVINO_C_API(ov_status_e)
ov_layout_create(const char *layout_desc, ov_layout_t **layout);
OPENVINO_C_API(void) ov_layout_free(ov_layout_t *layout);
/* Returns the layout in brackets, "[N,C,H,W]"; free it with ov_free(). NULL: no memory. */
OPENVINO_C_API(const char *) ov_layout_to_string(const ov_layout_t *layout);

#endif
