/* SPDX-License-Identifier: Apache-2.0
 *
 * Infer requests: inputs, outputs and states of one run after the other.
 *
 * While an asynchronous run goes on, all functions but cancel, wait and wait_for answer
 * REQUEST_BUSY. The states (KV cache) start empty; a fresh sequence takes a fresh
 * request, or xm_request_reset_states() of xemoe/xemoe.h.
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

/* Inputs and outputs by name, port or index. The request refers to the tensor's memory
 * and keeps the tensor alive. Results are written into an output tensor that was set. */
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

/* The handle shares the request's memory: an input may be filled in place (dynamic
 * dimensions are 0 until ov_tensor_set_shape), an output always shows the last run. */
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

/* Runs and waits. */
OPENVINO_C_API(ov_status_e) ov_infer_request_infer(ov_infer_request_t *infer_request);
/* Asks the run to stop that goes on, from the call on that starts it: infer and wait then answer
 * INFER_CANCELLED, unless it has got to its end before. The next run is not concerned; an idle
 * request has nothing to cancel. From any thread. */
OPENVINO_C_API(ov_status_e) ov_infer_request_cancel(ov_infer_request_t *infer_request);
OPENVINO_C_API(ov_status_e)
ov_infer_request_start_async(ov_infer_request_t *infer_request);
/* The outcome of the last run, of an asynchronous one when its callback is done; OK before the
 * first; INFER_CANCELLED after a cancel. */
OPENVINO_C_API(ov_status_e) ov_infer_request_wait(ov_infer_request_t *infer_request);
/* The same; RESULT_NOT_READY after `timeout` ms, or before the first run. */
OPENVINO_C_API(ov_status_e)
ov_infer_request_wait_for(ov_infer_request_t *infer_request, const int64_t timeout);
/* The struct is kept by pointer: it must live as long as the request may run. */
OPENVINO_C_API(ov_status_e)
ov_infer_request_set_callback(ov_infer_request_t *infer_request,
                              const ov_callback_t *callback);
/* Waits for a run that goes on. Not to be called from the callback. */
OPENVINO_C_API(void) ov_infer_request_free(ov_infer_request_t *infer_request);

/* What the steps of the last run took: a row each, in their order. real_time is the device's,
 * cpu_time that of steps on the host; node_type is the operation, exec_type the kernels. Without
 * PERF_COUNT when the model was compiled: rows without times on the device CPU, else an error. For
 * ov_profiling_info_list_free(). */
OPENVINO_C_API(ov_status_e)
ov_infer_request_get_profiling_info(const ov_infer_request_t *infer_request,
                                    ov_profiling_info_list_t *profiling_infos);
OPENVINO_C_API(void)
ov_profiling_info_list_free(ov_profiling_info_list_t *profiling_infos);

#endif
