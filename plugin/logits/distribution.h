/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics over token distributions. A row of logits has the probabilities
 * p = exp(logit - xm_log_sum_exp(logits)).
 */
#ifndef XM_PLUGIN_LOGITS_DISTRIBUTION_H
#define XM_PLUGIN_LOGITS_DISTRIBUTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the index of the largest logit, the lowest index of equal ones; 0 if all are NaN or
 * -infinity. */
uint64_t xm_likeliest(const float *row, uint64_t n);

/* A mean with its standard error. */
struct xm_estimate {
    double value, error;
};
/* Returns the estimate from the sum and the sum of squares of n values; its error is 0 if n <
 * least. */
struct xm_estimate xm_estimate_of(double sum, double squares, uint64_t n, uint64_t least);
/* Returns the exponential of an estimate x ± dx: exp(x) ± exp(x) dx. */
struct xm_estimate xm_estimate_exp(struct xm_estimate e);

#ifdef __cplusplus
}
#endif
#endif
