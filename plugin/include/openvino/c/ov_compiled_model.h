/* SPDX-License-Identifier: Apache-2.0
 *
 * Models compiled for a device. Any thread may use a compiled model.
 */
#ifndef OPENVINO_C_OV_COMPILED_MODEL_H
#define OPENVINO_C_OV_COMPILED_MODEL_H

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_infer_request.h"
#include "openvino/c/ov_model.h"
#include "openvino/c/ov_node.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_remote_context.h"

typedef struct ov_compiled_model ov_compiled_model_t;

/* The model's inputs and outputs. GENERAL_ERROR: the index is out of range, no port has the name,
 * or a function for the only port finds several. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_inputs_size(const ov_compiled_model_t *compiled_model, size_t *size);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_input(const ov_compiled_model_t *compiled_model,
                        ov_output_const_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_input_by_index(const ov_compiled_model_t *compiled_model,
                                 const size_t index, ov_output_const_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_input_by_name(const ov_compiled_model_t *compiled_model,
                                const char *name, ov_output_const_port_t **input_port);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_outputs_size(const ov_compiled_model_t *compiled_model, size_t *size);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_output(const ov_compiled_model_t *compiled_model,
                         ov_output_const_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_output_by_index(const ov_compiled_model_t *compiled_model,
                                  const size_t index,
                                  ov_output_const_port_t **output_port);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_output_by_name(const ov_compiled_model_t *compiled_model,
                                 const char *name, ov_output_const_port_t **output_port);

/* Creates a request with its own inputs, outputs and states. It may outlive the compiled model. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_create_infer_request(const ov_compiled_model_t *compiled_model,
                                       ov_infer_request_t **infer_request);

/* Sets one property: a key and a value. A compiled model is immutable, so that this returns
 * GENERAL_ERROR, except for AUTO_BATCH_TIMEOUT of the device BATCH. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_set_property(const ov_compiled_model_t *compiled_model, ...);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_set_properties(const ov_compiled_model_t *compiled_model,
                                 size_t num_properties, const ov_property_t *properties);
/* Returns the property's value as text. Free it with ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_get_property(const ov_compiled_model_t *compiled_model,
                               const char *property_key, char **property_value);

/* Returns the context in which the model runs: the one that it was compiled with, or else the
 * device's default context. GENERAL_ERROR: the device has no contexts. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_get_context(const ov_compiled_model_t *compiled_model,
                              ov_remote_context_t **context);

/* Writes the compiled model to a file, for ov_core_import_model and xm_import_model_from_file.
 * NOT_IMPLEMENTED: the device cannot export. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_export_model(const ov_compiled_model_t *compiled_model,
                               const char *export_model_path);
/* Returns the steps that the device executes, as a model with the inputs, outputs and name of the
 * compiled one. Its facts can be queried and xm_model_save() can write it, but it cannot be
 * compiled or reshaped. With PERF_COUNT, a step's execTimeMcs is the mean of its runs so far, in
 * microseconds. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_get_runtime_model(const ov_compiled_model_t *compiled_model,
                                    ov_model_t **model);
OPENVINO_C_API(void) ov_compiled_model_free(ov_compiled_model_t *compiled_model);

#endif
