/* SPDX-License-Identifier: Apache-2.0
 *
 * Profile of a request (plugin/profile.h): times by the queue, which labels launches with their
 * step, work by the sizes of each run.
 */
#ifndef XM_PLUGIN_GPU_REQUEST_PROFILE_H
#define XM_PLUGIN_GPU_REQUEST_PROFILE_H

#include "plugin/gpu/request.h"
#include "plugin/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By the same names in struct xm_profile_ops. */
enum xm_status xm_request_profile(struct xm_request *r, xm_profile_row_fn fn, void *ctx,
                                  struct xm_error *err);
/* Whether runs are measured: PERF_COUNT was set. */
bool xm_request_is_measured(const struct xm_request *r);
/* A row a step as if none had run. */
void xm_request_name_steps(const struct xm_request *r, xm_profile_row_fn fn, void *ctx);
void xm_request_reset_profile(struct xm_request *r);
enum xm_status xm_request_begin_trace(struct xm_request *r, struct xm_error *err);
enum xm_status xm_request_trace(struct xm_request *r, xm_trace_row_fn fn, void *ctx,
                                uint64_t *dropped, struct xm_error *err);

/* What a step has done in all runs since the last reset. */
struct xm_step_sum {
    uint64_t runs, bytes, multiply_adds;
};
/* Step i runs under the current bindings; for request_run.c, with r->sums. */
void xm_request_count_step(struct xm_request *r, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
