/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: an element type, a shape, and host memory or device memory (ov_remote_context.h).
 */
#ifndef OPENVINO_C_OV_TENSOR_H
#define OPENVINO_C_OV_TENSOR_H

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_partial_shape.h"
#include "openvino/c/ov_shape.h"

typedef struct ov_tensor ov_tensor_t;

/* Creates a tensor that uses the caller's memory, which is neither copied nor freed. */
OPENVINO_C_API(ov_status_e)
ov_tensor_create_from_host_ptr(const ov_element_type_e type, const ov_shape_t shape,
                               void *host_ptr, ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_tensor_create(const ov_element_type_e type, const ov_shape_t shape,
                 ov_tensor_t **tensor);
/* Creates a STRING tensor with copies of the strings. */
OPENVINO_C_API(ov_status_e)
ov_tensor_create_from_string_array(const char **string_array, const size_t array_size,
                                   const ov_shape_t shape, ov_tensor_t **tensor);
/* Changes the shape. Memory that the library allocated grows if necessary, without its contents;
 * GENERAL_ERROR if the caller's memory is too small. */
OPENVINO_C_API(ov_status_e)
ov_tensor_set_shape(ov_tensor_t *tensor, const ov_shape_t shape);
OPENVINO_C_API(ov_status_e)
ov_tensor_set_string_data(ov_tensor_t *tensor, const char **string_array,
                          const size_t array_size);
/* Free the shape with ov_shape_free(). */
OPENVINO_C_API(ov_status_e)
ov_tensor_get_shape(const ov_tensor_t *tensor, ov_shape_t *shape);
OPENVINO_C_API(ov_status_e)
ov_tensor_get_element_type(const ov_tensor_t *tensor, ov_element_type_e *type);
/* The number of elements. */
OPENVINO_C_API(ov_status_e)
ov_tensor_get_size(const ov_tensor_t *tensor, size_t *elements_size);
/* The size in bytes. Elements below 8 bits are packed and rounded up to whole bytes; a STRING
 * element counts 32 bytes. */
OPENVINO_C_API(ov_status_e)
ov_tensor_get_byte_size(const ov_tensor_t *tensor, size_t *byte_size);
/* Returns the address of the elements. GENERAL_ERROR: the memory is a device's. */
OPENVINO_C_API(ov_status_e) ov_tensor_data(const ov_tensor_t *tensor, void **data);
OPENVINO_C_API(void) ov_tensor_free(ov_tensor_t *tensor);

#endif
