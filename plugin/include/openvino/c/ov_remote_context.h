/* SPDX-License-Identifier: Apache-2.0
 *
 * Remote contexts: an OpenCL context of a device, which other code of the program can share, and
 * tensors in its memory. The handles passed here are cl_context, cl_command_queue, cl_mem and USM
 * pointers.
 *
 * Keys with their values, as arguments or in an array:
 *
 *   CONTEXT_TYPE "OCL", and OCL_CONTEXT or OCL_QUEUE or both (pointers), OCL_CONTEXT_DEVICE_ID "0"
 *   SHARED_MEM_TYPE "OCL_BUFFER" or "USM_USER_BUFFER", and MEM_HANDLE (pointer): given memory
 *   SHARED_MEM_TYPE "USM_HOST_BUFFER" or "USM_DEVICE_BUFFER", or no key at all: new memory
 *
 * OpenVINO's other kinds (VA_SHARED, images, surfaces) return GENERAL_ERROR.
 */
#ifndef OPENVINO_C_OV_REMOTE_CONTEXT_H
#define OPENVINO_C_OV_REMOTE_CONTEXT_H

#include "openvino/c/gpu/gpu_plugin_properties.h"
#include "openvino/c/ov_common.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_shape.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_remote_context ov_remote_context_t;

/* Creates a tensor in new or given memory. Given memory is neither copied nor freed: an OpenCL
 * buffer is retained, but USM must outlive the tensor. object_args_size is the number of arguments
 * that follow: key, value, key, value. */
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
/* Returns the name of the context's device, "GPU.0". Free it with ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_remote_context_get_device_name(const ov_remote_context_t *context, char **device_name);
/* Returns the context's keys and values, "CONTEXT_TYPE OCL OCL_CONTEXT 0x… OCL_QUEUE 0x…", and in
 * *size the number of pairs. The queue is 0 if none was given. Free the text with ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_remote_context_get_params(const ov_remote_context_t *context, size_t *size,
                             char **params);
/* Creates a tensor in host memory; the memory is USM if the device has USM. */
OPENVINO_C_API(ov_status_e)
ov_remote_context_create_host_tensor(const ov_remote_context_t *context,
                                     const ov_element_type_e type, const ov_shape_t shape,
                                     ov_tensor_t **tensor);
/* Frees the context; objects made with it stay valid. */
OPENVINO_C_API(void) ov_remote_context_free(ov_remote_context_t *context);

/* As ov_remote_context_get_params and _get_device_name, for the memory of a tensor.
 * INVALID_C_PARAM: the tensor is not remote. */
OPENVINO_C_API(ov_status_e)
ov_remote_tensor_get_params(ov_tensor_t *tensor, size_t *size, char **params);
OPENVINO_C_API(ov_status_e)
ov_remote_tensor_get_device_name(ov_tensor_t *remote_tensor, char **device_name);

#endif
