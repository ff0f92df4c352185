/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of logits as a distribution of tokens: p = exp(logit - xm_log_sum_exp(logits)).
 */
#ifndef XM_PLUGIN_CLI_DISTRIBUTION_H
#define XM_PLUGIN_CLI_DISTRIBUTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first of the largest. */
uint64_t xm_likeliest(const float *row, uint64_t n);

/* A mean with its standard error. */
struct xm_estimate {
    double value, error;
};
/* Of n values by their sum and the sum of their squares; of fewer than `least` the error is 0. */
struct xm_estimate xm_estimate_of(double sum, double squares, uint64_t n, uint64_t least);
/* exp of one: exp(x) ± exp(x) dx. */
struct xm_estimate xm_estimate_exp(struct xm_estimate e);

#ifdef __cplusplus
}
#endif
#endif
