/* SPDX-License-Identifier: Apache-2.0
 *
 * What xemoe offers beyond OpenVINO's C API.
 */
#ifndef XEMOE_XEMOE_H
#define XEMOE_XEMOE_H

#include "openvino/c/ov_infer_request.h"

/* "0.1.0"; static. */
OPENVINO_C_API(const char *) xm_version(void);

/* Empties the states (KV cache): the next run starts a new sequence. REQUEST_BUSY while
 * an asynchronous run goes on. */
OPENVINO_C_API(ov_status_e) xm_request_reset_states(ov_infer_request_t *infer_request);

#endif
