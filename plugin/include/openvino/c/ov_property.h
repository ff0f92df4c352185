/* SPDX-License-Identifier: Apache-2.0
 *
 * Property keys. Each is a variable that holds the key's text.
 */
#ifndef OPENVINO_C_OV_PROPERTY_H
#define OPENVINO_C_OV_PROPERTY_H

#include "openvino/c/ov_common.h"

/* A property: its key and, for almost all keys, its value as text. */
typedef struct {
    const char *key;
    const void *value;
} ov_property_t;

OPENVINO_C_VAR(const char *) ov_property_key_supported_properties;
OPENVINO_C_VAR(const char *) ov_property_key_available_devices;
OPENVINO_C_VAR(const char *) ov_property_key_optimal_number_of_infer_requests;
OPENVINO_C_VAR(const char *) ov_property_key_range_for_async_infer_requests;
OPENVINO_C_VAR(const char *) ov_property_key_range_for_streams;
OPENVINO_C_VAR(const char *) ov_property_key_device_full_name;
OPENVINO_C_VAR(const char *) ov_property_key_device_capabilities;
OPENVINO_C_VAR(const char *) ov_property_key_model_name;
OPENVINO_C_VAR(const char *) ov_property_key_optimal_batch_size;
OPENVINO_C_VAR(const char *) ov_property_key_max_batch_size;
OPENVINO_C_VAR(const char *) ov_property_key_cache_dir;
OPENVINO_C_VAR(const char *) ov_property_key_cache_mode;
OPENVINO_C_VAR(const char *) ov_property_key_cache_encryption_callbacks;
OPENVINO_C_VAR(const char *) ov_property_key_num_streams;
OPENVINO_C_VAR(const char *) ov_property_key_inference_num_threads;
OPENVINO_C_VAR(const char *) ov_property_key_hint_enable_cpu_pinning;
OPENVINO_C_VAR(const char *) ov_property_key_hint_enable_hyper_threading;
OPENVINO_C_VAR(const char *) ov_property_key_hint_performance_mode;
OPENVINO_C_VAR(const char *) ov_property_key_hint_scheduling_core_type;
OPENVINO_C_VAR(const char *) ov_property_key_hint_inference_precision;
OPENVINO_C_VAR(const char *) ov_property_key_hint_num_requests;
OPENVINO_C_VAR(const char *) ov_property_key_log_level;
OPENVINO_C_VAR(const char *) ov_property_key_hint_model_priority;
OPENVINO_C_VAR(const char *) ov_property_key_enable_profiling;
OPENVINO_C_VAR(const char *) ov_property_key_device_priorities;
OPENVINO_C_VAR(const char *) ov_property_key_hint_execution_mode;
OPENVINO_C_VAR(const char *) ov_property_key_force_tbb_terminate;
OPENVINO_C_VAR(const char *) ov_property_key_enable_mmap;
OPENVINO_C_VAR(const char *) ov_property_key_auto_batch_timeout;
OPENVINO_C_VAR(const char *) ov_property_key_intel_gpu_config_file;

#endif
