/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares one step of a compiled model, after it has run, with the host reference on the same
 * operands. A comparison reports the row with the largest error.
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
    bool compared;         /* false: the reference cannot check this step */
    /* ||device - reference|| / ||reference|| of that row, Euclidean norms */
    double error;
    double tolerance; /* 0: the values are integers, which must be equal */
    uint64_t row;
    /* includes errors of earlier steps; then only the first step over the tolerance is at
     * fault */
    bool accumulates;
    const char *part; /* what the row belongs to: NULL, a result; or a static text */
    char kernels[XM_STEP_CHECK_KERNELS]; /* the kernels that ran, separated by spaces */
};

/* Returns the error divided by the tolerance; above 1 the step fails. Infinity: the device's values
 * have NaN or infinity, or integers differ. */
double xm_step_check_severity(const struct xm_step_check *c);

/* Is called after each step of a run. */
typedef void (*xm_step_check_fn)(const struct xm_step_check *check, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
