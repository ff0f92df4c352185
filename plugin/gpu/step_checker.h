/* SPDX-License-Identifier: Apache-2.0
 *
 * Every step of a request's runs against the host reference on the same operands.
 *
 *     error of a row = |device - reference| / |reference|     (Euclidean, along the last axis)
 *
 * Because each step is compared on what the device gave it, errors do not add up from step to step:
 * the first wrong kernel is the first step over its tolerance. In attention the reference has the
 * keys and values that are in the device's cache, whose rows are compared as well. Not compared:
 * steps that ran on the host. A step with two equal router logits may choose another expert than
 * the reference.
 */
#ifndef XM_PLUGIN_GPU_STEP_CHECKER_H
#define XM_PLUGIN_GPU_STEP_CHECKER_H

#include "plugin/gpu/request.h"
#include "plugin/step_check.h"

struct xm_step_checker;

/* From now on, until it is destroyed, which is before the request is. The states of the reference
 * are empty. XM_INVALID: the program has not kept its graph. */
enum xm_status xm_step_checker_create(struct xm_request *r, xm_step_check_fn fn,
                                      void *ctx, struct xm_step_checker **out,
                                      struct xm_error *err);
void xm_step_checker_destroy(struct xm_step_checker *c); /* NULL is allowed */

#endif
