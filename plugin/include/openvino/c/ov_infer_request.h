/* SPDX-License-Identifier: Apache-2.0
 *
 * Infer requests: the inputs, outputs and states of runs that follow one another.
 *
 * During an asynchronous run, all functions but cancel, wait and wait_for return REQUEST_BUSY. The
 * states (KV cache) start empty. To start a new sequence, create a new request or call
 * xm_request_reset_states() of xemoe/xemoe.h.
 */
#ifndef OPENVINO_C_OV_INFER_REQUEST_H
#define OPENVINO_C_OV_INFER_REQUEST_H

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_node.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_infer_request ov_infer_request_t;

/* Called from a thread of the library when an asynchronous run has ended. */
typedef struct {
    void(OPENVINO_C_API_CALLBACK *callback_func)(void *args);
    void *args;
} ov_callback_t;

typedef struct {
    enum Status { NOT_RUN, OPTIMIZED_OUT, EXECUTED } status;
    int64_t real_time; /* microseconds */
    int64_t cpu_time;
    const char *node_name;
    const char *exec_type;
    const char *node_type;
} ov_profiling_info_t;

typedef struct {
    ov_profiling_info_t *profiling_infos;
    size_t size;
} ov_profiling_info_list_t;

/* Sets the tensor of an input or output, by name, port or index. The request uses the tensor's
 * memory and keeps the tensor alive. Runs write their results into an output tensor that was
 * set. */
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_tensor(ov_infer_request_t *infer_request, const char *tensor_name,
                            const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_tensor_by_port(ov_infer_request_t *infer_request,
                                    const ov_output_port_t *port,
                                    const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_tensor_by_const_port(ov_infer_request_t *infer_request,
                                          const ov_output_const_port_t *port,
                                          const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_input_tensor_by_index(ov_infer_request_t *infer_request,
                                           const size_t idx, const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_input_tensor(ov_infer_request_t *infer_request,
                                  const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_output_tensor_by_index(ov_infer_request_t *infer_request,
                                            const size_t idx, const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_output_tensor(ov_infer_request_t *infer_request,
                                   const ov_tensor_t *tensor);

/* Returns a tensor that shares the request's memory. A caller may fill an input in place, after
 * ov_tensor_set_shape if it has dynamic dimensions, which are 0 before. An output always shows the
 * results of the last run. */
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_tensor(const ov_infer_request_t *infer_request,
                            const char *tensor_name, ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_tensor_by_const_port(const ov_infer_request_t *infer_request,
                                          const ov_output_const_port_t *port,
                                          ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_tensor_by_port(const ov_infer_request_t *infer_request,
                                    const ov_output_port_t *port, ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_input_tensor_by_index(const ov_infer_request_t *infer_request,
                                           const size_t idx, ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_input_tensor(const ov_infer_request_t *infer_request,
                                  ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_output_tensor_by_index(const ov_infer_request_t *infer_request,
                                            const size_t idx, ov_tensor_t **tensor);
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_output_tensor(const ov_infer_request_t *infer_request,
                                   ov_tensor_t **tensor);

/* Runs the model and returns when the results are complete. */
OPENVINO_C_API(ov_status_e) ov_infer_request_infer(ov_infer_request_t *infer_request);
/* Asks the run in progress to stop. Then infer and wait return INFER_CANCELLED, unless the run had
 * already completed. A cancel takes effect from the moment that infer or start_async is called;
 * without a run it does nothing, and it never affects the next run. Any thread may call it. */
OPENVINO_C_API(ov_status_e) ov_infer_request_cancel(ov_infer_request_t *infer_request);
OPENVINO_C_API(ov_status_e)
ov_infer_request_start_async(ov_infer_request_t *infer_request);
/* Waits for the asynchronous run in progress and its callback, if any. Returns the status of the
 * last run: OK before the first run, INFER_CANCELLED after a cancelled one. */
OPENVINO_C_API(ov_status_e) ov_infer_request_wait(ov_infer_request_t *infer_request);
/* As ov_infer_request_wait. RESULT_NOT_READY: after `timeout` milliseconds the run or its callback
 * is still in progress, or no run has begun yet. */
OPENVINO_C_API(ov_status_e)
ov_infer_request_wait_for(ov_infer_request_t *infer_request, const int64_t timeout);
/* Sets the function that is called after each asynchronous run. The request keeps the pointer:
 * *callback must live as long as runs may occur. */
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_callback(ov_infer_request_t *infer_request,
                              const ov_callback_t *callback);
/* Waits for a run in progress and frees the request. The callback must not call it. */
OPENVINO_C_API(void) ov_infer_request_free(ov_infer_request_t *infer_request);

/* Returns one entry for each step of the last run, in order. real_time is the time of steps on the
 * device, cpu_time that of steps on the host; node_type is the operation, exec_type names the
 * kernels. A model compiled without PERF_COUNT has entries without times on the device CPU, and
 * fails on other devices. Free the list with ov_profiling_info_list_free(). */
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_profiling_info(const ov_infer_request_t *infer_request,
                                    ov_profiling_info_list_t *profiling_infos);
OPENVINO_C_API(void)
ov_profiling_info_list_free(ov_profiling_info_list_t *profiling_infos);

#endif
