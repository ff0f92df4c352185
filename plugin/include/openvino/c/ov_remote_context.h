/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of devices, and tensors in their memory, which other programs of the same OpenCL context
 * share. Handles of such programs are cl_context, cl_command_queue, cl_mem and pointers to USM.
 *
 * Keys and what comes with them, as arguments or in an array:
 *
 *   CONTEXT_TYPE "OCL", and OCL_CONTEXT or OCL_QUEUE or both (pointers), OCL_CONTEXT_DEVICE_ID "0"
 *   SHARED_MEM_TYPE "OCL_BUFFER" or "USM_USER_BUFFER", and MEM_HANDLE (pointer);
 *   SHARED_MEM_TYPE "USM_HOST_BUFFER" or "USM_DEVICE_BUFFER", or no key at all: new memory
 *
 * What else OpenVINO has (VA_SHARED, images, surfaces) is GENERAL_ERROR.
 */
#ifndef OPENVINO_C_OV_REMOTE_CONTEXT_H
#define OPENVINO_C_OV_REMOTE_CONTEXT_H

#include "openvino/c/gpu/gpu_plugin_properties.h"
#include "openvino/c/ov_common.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_shape.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_remote_context ov_remote_context_t;

/* Memory of others is neither copied nor freed: buffers are retained, USM is to outlive the tensor.
 * The size counts the arguments that follow: key, value, key, value. */
OPENVINO_C_API(ov_status_e)
ov_remote_context_create_tensor(const ov_remote_context_t *context,
                                const ov_element_type_e type, const ov_shape_t shape,
                                const size_t object_args_size,
                                ov_tensor_t **remote_tensor, ...);
OPENVINO_C_API(ov_status_e)
ov_remote_context_create_tensor_props(const ov_remote_context_t *context,
                                      const ov_element_type_e type,
                                      const ov_shape_t shape, size_t num_properties,
                                      const ov_property_t *properties,
                                      ov_tensor_t **remote_tensor);
/* "GPU.0"; for ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_remote_context_get_device_name(const ov_remote_context_t *context, char **device_name);
/* So many pairs in "CONTEXT_TYPE OCL OCL_CONTEXT 0x… OCL_QUEUE 0x…", for ov_free(). The queue is 0
 * where none was given. */
OPENVINO_C_API(ov_status_e)
ov_remote_context_get_params(const ov_remote_context_t *context, size_t *size,
                             char **params);
/* A tensor of host memory, USM where the device has it. */
OPENVINO_C_API(ov_status_e)
ov_remote_context_create_host_tensor(const ov_remote_context_t *context,
                                     const ov_element_type_e type, const ov_shape_t shape,
                                     ov_tensor_t **tensor);
/* What was made with it stays valid. */
OPENVINO_C_API(void) ov_remote_context_free(ov_remote_context_t *context);

/* Of tensors that are not remote: INVALID_C_PARAM. */
OPENVINO_C_API(ov_status_e)
ov_remote_tensor_get_params(ov_tensor_t *tensor, size_t *size, char **params);
OPENVINO_C_API(ov_status_e)
ov_remote_tensor_get_device_name(ov_tensor_t *remote_tensor, char **device_name);

#endif
