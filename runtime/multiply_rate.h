/* SPDX-License-Identifier: Apache-2.0
 *
 * The rate at which a device multiplies and adds values in registers: the bound for processing
 * prompts. */
#ifndef XM_RUNTIME_MULTIPLY_RATE_H
#define XM_RUNTIME_MULTIPLY_RATE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the rate: *rate is multiply-adds a second of all work-items together. Runs a kernel
 * repeatedly for `seconds`, after one run to warm up, and takes the fastest run. `element` is f16
 * or f32; CPU devices multiply in f32 in both cases, as their kernels do. Matrix engines and
 * integer products may be faster than this rate. */
enum xm_status xm_multiply_rate(struct xm_engine *engine, enum xm_element element,
                                double seconds, double *rate, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
