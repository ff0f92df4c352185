/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a compiled model that has just run, compared with the host reference on the operands
 * that the device had: the worst of its rows.
 */
#ifndef XM_PLUGIN_STEP_CHECK_H
#define XM_PLUGIN_STEP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_STEP_CHECK_KERNELS = 512 };
struct xm_step_check {
    uint32_t step, n_steps;
    const char *op, *name; /* live as long as the compiled model */
    bool compared;         /* false: the reference has nothing to compare with          */
    double error;          /* |device - reference| / |reference| of that row, 2-norms   */
    double tolerance;      /* 0: integers, which must agree                             */
    uint64_t row;
    bool
        accumulates; /* errors of earlier steps are in it: the first over tolerance counts */
    const char *part; /* what it is a row of: NULL, a result; or a static text */
    char kernels[XM_STEP_CHECK_KERNELS]; /* that ran, separated by spaces */
};

/* The error of a step divided by its tolerance; above 1 the step fails. Infinity: NaN or infinite
 * values, or integers that differ. */
double xm_step_check_severity(const struct xm_step_check *c);

/* After each step of a run. */
typedef void (*xm_step_check_fn)(const struct xm_step_check *check, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
