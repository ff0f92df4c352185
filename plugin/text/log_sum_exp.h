/* SPDX-License-Identifier: Apache-2.0
 *
 * The normaliser that turns logits into log-probabilities: log p = logit - log_sum_exp(logits).
 */
#ifndef XM_PLUGIN_TEXT_LOG_SUM_EXP_H
#define XM_PLUGIN_TEXT_LOG_SUM_EXP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns log(sum of exp(row[0..n-1])). It is finite unless a logit is NaN or +infinity, or all are
 * -infinity. */
double xm_log_sum_exp(const float *row, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
