/* SPDX-License-Identifier: Apache-2.0
 *
 * The measurement: requests, the first inference, and inferences one by one or as many at once as
 * there are requests, up to a number or a time.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RUN_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_RUN_H

#include "plugin/benchmark_app/benchmark_inputs.h"

/* What is asked for. */
struct xm_benchmark_job {
    ov_compiled_model_t *compiled;
    const struct xm_benchmark_inputs *inputs;
    const struct xm_benchmark_ports *outputs;
    ov_remote_context_t *context; /* tensors are in its memory; NULL: in the host's */
    uint64_t requests;
    uint64_t niter;   /* at least; XM_BENCHMARK_UNSAID: no limit */
    uint64_t seconds; /* the same                                */
    uint64_t round;   /* inferences come in multiples of it      */
    double max_irate; /* inferences a second; 0: no cap */
    bool is_async;
    /* the next set before each inference; false: request i keeps set i */
    bool fills_inside;
    bool warm_up, progress;
};

/* Zero-initialise. */
struct xm_benchmark_sample {
    double ms;
    size_t set;
};

struct xm_benchmark_run {
    struct xm_benchmark_request *requests; /* owned */
    size_t n_requests;
    struct xm_benchmark_sample *samples; /* owned, as the inferences ended */
    size_t n, capacity;
    double first_ms;         /* of the inference before; < 0: none */
    double duration_ms;      /* of all samples together            */
    uint64_t frames, tokens; /* in all samples                     */
};

/* Makes the requests and fills each for the first time. `job` must outlive *out. */
enum xm_status xm_benchmark_run_prepare(const struct xm_benchmark_job *job,
                                        struct xm_benchmark_run *out,
                                        struct xm_error *err);
/* The first inference. XM_CANCELLED: Ctrl-C. */
enum xm_status xm_benchmark_run_first(const struct xm_benchmark_job *job,
                                      struct xm_benchmark_run *r, struct xm_error *err);
/* All that are measured. */
enum xm_status xm_benchmark_run_all(const struct xm_benchmark_job *job,
                                    struct xm_benchmark_run *r, struct xm_error *err);
void xm_benchmark_run_free(struct xm_benchmark_run *r);

/* For their counters. */
ov_infer_request_t *xm_benchmark_run_request(const struct xm_benchmark_run *r, size_t i);

#endif
