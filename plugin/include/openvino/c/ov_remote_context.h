/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of devices: the type that other headers name. Their functions are not there.
 */
#ifndef OPENVINO_C_OV_REMOTE_CONTEXT_H
#define OPENVINO_C_OV_REMOTE_CONTEXT_H

#include "openvino/c/gpu/gpu_plugin_properties.h"
#include "openvino/c/ov_common.h"
#include "openvino/c/ov_shape.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_remote_context ov_remote_context_t;

#endif
