/* SPDX-License-Identifier: Apache-2.0
 *
 * Models compiled for a device; usable from any thread. Not there: the runtime model.
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

/* Ports; out of range, unknown, or not the only one: GENERAL_ERROR. */
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

/* A request of its own inputs, outputs and states; it may outlive the compiled model. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_create_infer_request(const ov_compiled_model_t *compiled_model,
                                       ov_infer_request_t **infer_request);

/* A compiled model is fixed: setting is refused with GENERAL_ERROR, but for AUTO_BATCH_TIMEOUT
 * of the device BATCH. One key and one value. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_set_property(const ov_compiled_model_t *compiled_model, ...);
OPENVINO_C_API(ov_status_e)
ov_compiled_model_set_properties(const ov_compiled_model_t *compiled_model,
                                 size_t num_properties, const ov_property_t *properties);
/* For ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_get_property(const ov_compiled_model_t *compiled_model,
                               const char *property_key, char **property_value);

/* That in which it runs: the one that it was compiled with, or the device's own. GENERAL_ERROR
 * where the device has none. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_get_context(const ov_compiled_model_t *compiled_model,
                              ov_remote_context_t **context);

/* NOT_IMPLEMENTED where the device cannot. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_export_model(const ov_compiled_model_t *compiled_model,
                               const char *export_model_path);
/* What runs, as a model with the compiled one's inputs, outputs and name: it can be asked, and
 * written by xm_model_save(), but neither compiled nor reshaped. With PERF_COUNT a step's
 * execTimeMcs is the mean of the runs so far, in microseconds. */
OPENVINO_C_API(ov_status_e)
ov_compiled_model_get_runtime_model(const ov_compiled_model_t *compiled_model,
                                    ov_model_t **model);
OPENVINO_C_API(void) ov_compiled_model_free(ov_compiled_model_t *compiled_model);

#endif
