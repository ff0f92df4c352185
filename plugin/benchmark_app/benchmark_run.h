/* SPDX-License-Identifier: Apache-2.0
 *
 * The measurement: a first inference, then inferences one at a time (-api sync) or on all requests
 * at once (-api async), until a number or a time is reached.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RUN_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RUN_H

#include "plugin/benchmark_app/benchmark_inputs.h"

/* The parameters of a measurement; nothing is owned. */
struct xm_benchmark_job {
    ov_compiled_model_t *compiled;
    const struct xm_benchmark_inputs *inputs;
    const struct xm_benchmark_ports *outputs;
    /* the context for the tensors' memory; NULL: host memory */
    ov_remote_context_t *context;
    uint64_t requests; /* number of requests                      */
    uint64_t niter;    /* least number of inferences; XM_BENCHMARK_UNSAID: not given */
    uint64_t seconds;  /* least duration; XM_BENCHMARK_UNSAID: not given             */
    uint64_t round;    /* the number of inferences is a multiple of it               */
    double max_irate;  /* most inferences a second; 0: no limit                      */
    bool is_async;
    /* true: a request gets the next set before each inference; false: request i keeps set i */
    bool fills_inside;
    bool warm_up, progress;
};

/* One inference: its latency, and the set of inputs that it ran. */
struct xm_benchmark_sample {
    double ms;
    size_t set;
};
/* Zero-initialise. */

struct xm_benchmark_run {
    struct xm_benchmark_request *requests; /* owned */
    size_t n_requests;
    /* owned; in the order in which inferences ended */
    struct xm_benchmark_sample *samples;
    size_t n, capacity;
    /* latency of the first inference, which is not in `samples`; < 0: none */
    double first_ms;
    /* from the start of the first sample to the end of the last */
    double duration_ms;
    uint64_t frames, tokens; /* in all samples; frames: the sum of batch sizes */
};

/* Creates the requests and fills the inputs of each. `job` must outlive *out. */
enum xm_status xm_benchmark_run_prepare(const struct xm_benchmark_job *job,
                                        struct xm_benchmark_run *out,
                                        struct xm_error *err);
/* Runs the first inference. XM_CANCELLED: Ctrl-C. */
enum xm_status xm_benchmark_run_first(const struct xm_benchmark_job *job,
                                      struct xm_benchmark_run *r, struct xm_error *err);
/* Runs the measured inferences. XM_CANCELLED: Ctrl-C. */
enum xm_status xm_benchmark_run_all(const struct xm_benchmark_job *job,
                                    struct xm_benchmark_run *r, struct xm_error *err);
void xm_benchmark_run_free(struct xm_benchmark_run *r);

/* Request i, for reading its counters; owned by `r`. */
ov_infer_request_t *xm_benchmark_run_request(const struct xm_benchmark_run *r, size_t i);

#endif
