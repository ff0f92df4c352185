/* SPDX-License-Identifier: Apache-2.0
 *
 * Models as read from files. Free ports with ov_output_port_free() and ov_output_const_port_free().
 * Without a reshape, dynamic dimensions stay symbolic, and one compiled model serves every size.
 */
#ifndef OPENVINO_C_OV_MODEL_H
#define OPENVINO_C_OV_MODEL_H

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_node.h"
#include "openvino/c/ov_partial_shape.h"

typedef struct ov_model ov_model_t;

/* Frees the model; models compiled from it stay valid. */
OPENVINO_C_API(void) ov_model_free(ov_model_t *model);

/* Inputs and outputs. Without a name or an index: the only port; GENERAL_ERROR if there are
 * several. By index: UNKNOW_EXCEPTION if it is out of range. */
OPENVINO_C_API(ov_status_e)
ov_model_const_input(const ov_model_t *model, ov_output_const_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_model_const_input_by_name(const ov_model_t *model, const char *tensor_name,
                             ov_output_const_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_model_const_input_by_index(const ov_model_t *model, const size_t index,
                              ov_output_const_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_model_input(const ov_model_t *model, ov_output_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_model_input_by_name(const ov_model_t *model, const char *tensor_name,
                       ov_output_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_model_input_by_index(const ov_model_t *model, const size_t index,
                        ov_output_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_model_const_output(const ov_model_t *model, ov_output_const_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_model_const_output_by_name(const ov_model_t *model, const char *tensor_name,
                              ov_output_const_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_model_const_output_by_index(const ov_model_t *model, const size_t index,
                               ov_output_const_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_model_output(const ov_model_t *model, ov_output_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_model_output_by_name(const ov_model_t *model, const char *tensor_name,
                        ov_output_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_model_output_by_index(const ov_model_t *model, const size_t index,
                         ov_output_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_model_inputs_size(const ov_model_t *model, size_t *input_size);
OPENVINO_C_API(ov_status_e)
ov_model_outputs_size(const ov_model_t *model, size_t *output_size);

/* Sets other shapes for inputs and infers all types again. GENERAL_ERROR: the shapes contradict the
 * model; the text names the input or node, and the model is unchanged. Models compiled before keep
 * their shapes. For the batch, token and past dimensions of language models, sizes are checked at
 * each run instead, because the same graph serves all sizes. */
OPENVINO_C_API(ov_status_e)
ov_model_reshape(const ov_model_t *model, const char **tensor_names,
                 const ov_partial_shape_t *partial_shapes, size_t size);
OPENVINO_C_API(ov_status_e)
ov_model_reshape_input_by_name(const ov_model_t *model, const char *tensor_name,
                               const ov_partial_shape_t partial_shape);
/* Reshapes the first input. If there are others, their current shapes must agree with the new
 * one. */
OPENVINO_C_API(ov_status_e)
ov_model_reshape_single_input(const ov_model_t *model,
                              const ov_partial_shape_t partial_shape);
OPENVINO_C_API(ov_status_e)
ov_model_reshape_by_port_indexes(const ov_model_t *model, const size_t *port_indexes,
                                 const ov_partial_shape_t *partial_shape, size_t size);
OPENVINO_C_API(ov_status_e)
ov_model_reshape_by_ports(const ov_model_t *model, const ov_output_port_t **output_ports,
                          const ov_partial_shape_t *partial_shapes, size_t size);

/* Whether any value has a dynamic shape. */
OPENVINO_C_API(bool) ov_model_is_dynamic(const ov_model_t *model);
/* Returns the model's name in its file. Free it with ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_model_get_friendly_name(const ov_model_t *model, char **friendly_name);

#endif
