/* SPDX-License-Identifier: Apache-2.0
 *
 * Profile of a request (plugin/profile.h): the time of each step, which the queue measures because
 * launches are labelled with their step, and the step's work, which follows from the sizes of each
 * run.
 */
#ifndef XM_PLUGIN_GPU_REQUEST_PROFILE_H
#define XM_PLUGIN_GPU_REQUEST_PROFILE_H

#include "plugin/gpu/request.h"
#include "plugin/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* xm_request_profile, _reset_profile, _begin_trace and _trace implement the members rows, reset,
 * begin_trace and trace of struct xm_profile_ops (plugin/profile.h). */
enum xm_status xm_request_profile(struct xm_request *r, xm_profile_row_fn fn, void *ctx,
                                  struct xm_error *err);
/* Returns whether the times of steps are measured (PERF_COUNT). Their work may be counted without
 * (xm_request_count_work). */
bool xm_request_is_measured(const struct xm_request *r);
/* Calls `fn` with a profile row for each step, which has the step's name and all counts 0. */
void xm_request_name_steps(const struct xm_request *r, xm_profile_row_fn fn, void *ctx);
void xm_request_reset_profile(struct xm_request *r);
enum xm_status xm_request_begin_trace(struct xm_request *r, struct xm_error *err);
enum xm_status xm_request_trace(struct xm_request *r, xm_trace_row_fn fn, void *ctx,
                                uint64_t *dropped, struct xm_error *err);

/* The work of a step in all runs since the last reset. */
struct xm_step_sum {
    uint64_t runs, bytes, multiply_adds;
    uint64_t stored_bytes; /* of `bytes`: of weights and the KV cache */
};
/* Adds a run of step i, under the current bindings of symbols, to r->sums; called by
 * request_run.c. */
void xm_request_count_step(struct xm_request *r, uint32_t i);
/* Returns the sum of step i; r must count work (r->sums is set). */
const struct xm_step_sum *xm_request_step_sum(const struct xm_request *r, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
