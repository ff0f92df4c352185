/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a device multiplies and adds in registers: what prompts are measured against.
 */
#ifndef XM_RUNTIME_MULTIPLY_RATE_H
#define XM_RUNTIME_MULTIPLY_RATE_H

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Multiply-adds a second of all work-items together, in the fastest pass of those that `seconds`
 * have room for, behind one that does not count. In `element`, f16 or f32; CPU devices multiply in
 * f32 whatever it is, as their kernels do. Matrix engines and products of integers may be
 * faster. */
enum xm_status xm_multiply_rate(struct xm_engine *engine, enum xm_element element,
                                double seconds, double *rate, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
