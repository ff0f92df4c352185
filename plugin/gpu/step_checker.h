/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares every step of a request's runs with the host reference on the same operands.
 *
 *     error of a row = |device - reference| / |reference|     (Euclidean, along the last axis)
 *
 * The reference computes each step from the operands that the device had, so errors do not
 * accumulate: the first wrong kernel is the first step over its tolerance. For attention the
 * reference reads keys and values from the device's cache; the cache's rows are compared, too.
 * Steps that ran on the host are not compared. A router with two equal logits may choose another
 * expert than the reference does.
 */
#ifndef XM_PLUGIN_GPU_STEP_CHECKER_H
#define XM_PLUGIN_GPU_STEP_CHECKER_H

#include "plugin/gpu/request.h"
#include "plugin/step_check.h"

struct xm_step_checker;

/* Checks every step of `r` from now on and calls `fn` with the result, until the checker is
 * destroyed. Destroy it before the request. The reference starts with empty states, so create the
 * checker while the request's states are empty. XM_INVALID: the program has not kept its graph. */
enum xm_status xm_step_checker_create(struct xm_request *r, xm_step_check_fn fn,
                                      void *ctx, struct xm_step_checker **out,
                                      struct xm_error *err);
void xm_step_checker_destroy(struct xm_step_checker *c); /* NULL is allowed */

#endif
