/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions of the property key variables.
 */
#include "openvino/c/auto/properties.h"
#include "openvino/c/gpu/gpu_plugin_properties.h"
#include "openvino/c/ov_property.h"

/* clang-format off */
const char *ov_property_key_supported_properties                 = "SUPPORTED_PROPERTIES";
const char *ov_property_key_available_devices                    = "AVAILABLE_DEVICES";
const char *ov_property_key_optimal_number_of_infer_requests     = "OPTIMAL_NUMBER_OF_INFER_REQUESTS";
const char *ov_property_key_range_for_async_infer_requests       = "RANGE_FOR_ASYNC_INFER_REQUESTS";
const char *ov_property_key_range_for_streams                    = "RANGE_FOR_STREAMS";
const char *ov_property_key_device_full_name                     = "FULL_DEVICE_NAME";
const char *ov_property_key_device_capabilities                  = "OPTIMIZATION_CAPABILITIES";
const char *ov_property_key_model_name                           = "NETWORK_NAME";
const char *ov_property_key_optimal_batch_size                   = "OPTIMAL_BATCH_SIZE";
const char *ov_property_key_max_batch_size                       = "MAX_BATCH_SIZE";
const char *ov_property_key_cache_dir                            = "CACHE_DIR";
const char *ov_property_key_cache_mode                           = "CACHE_MODE";
const char *ov_property_key_cache_encryption_callbacks           = "CACHE_ENCRYPTION_CALLBACKS";
const char *ov_property_key_num_streams                          = "NUM_STREAMS";
const char *ov_property_key_inference_num_threads                = "INFERENCE_NUM_THREADS";
const char *ov_property_key_hint_enable_cpu_pinning              = "ENABLE_CPU_PINNING";
const char *ov_property_key_hint_enable_hyper_threading          = "ENABLE_HYPER_THREADING";
const char *ov_property_key_hint_performance_mode                = "PERFORMANCE_HINT";
const char *ov_property_key_hint_scheduling_core_type            = "SCHEDULING_CORE_TYPE";
const char *ov_property_key_hint_inference_precision             = "INFERENCE_PRECISION_HINT";
const char *ov_property_key_hint_num_requests                    = "PERFORMANCE_HINT_NUM_REQUESTS";
const char *ov_property_key_log_level                            = "LOG_LEVEL";
const char *ov_property_key_hint_model_priority                  = "MODEL_PRIORITY";
const char *ov_property_key_enable_profiling                     = "PERF_COUNT";
const char *ov_property_key_device_priorities                    = "MULTI_DEVICE_PRIORITIES";
const char *ov_property_key_hint_execution_mode                  = "EXECUTION_MODE_HINT";
const char *ov_property_key_force_tbb_terminate                  = "FORCE_TBB_TERMINATE";
const char *ov_property_key_enable_mmap                          = "ENABLE_MMAP";
const char *ov_property_key_auto_batch_timeout                   = "AUTO_BATCH_TIMEOUT";
const char *ov_property_key_intel_gpu_config_file                = "CONFIG_FILE";
const char *ov_property_key_intel_gpu_context_type               = "CONTEXT_TYPE";
const char *ov_property_key_intel_gpu_ocl_context                = "OCL_CONTEXT";
const char *ov_property_key_intel_gpu_ocl_context_device_id      = "OCL_CONTEXT_DEVICE_ID";
const char *ov_property_key_intel_gpu_tile_id                    = "TILE_ID";
const char *ov_property_key_intel_gpu_ocl_queue                  = "OCL_QUEUE";
const char *ov_property_key_intel_gpu_va_device                  = "VA_DEVICE";
const char *ov_property_key_intel_gpu_shared_mem_type            = "SHARED_MEM_TYPE";
const char *ov_property_key_intel_gpu_mem_handle                 = "MEM_HANDLE";
const char *ov_property_key_intel_gpu_dev_object_handle          = "DEV_OBJECT_HANDLE";
const char *ov_property_key_intel_gpu_va_plane                   = "VA_PLANE";
const char *ov_property_key_intel_auto_device_bind_buffer        = "DEVICE_BIND_BUFFER";
const char *ov_property_key_intel_auto_enable_startup_fallback   = "ENABLE_STARTUP_FALLBACK";
const char *ov_property_key_intel_auto_enable_runtime_fallback   = "ENABLE_RUNTIME_FALLBACK";
/* clang-format on */
