/* SPDX-License-Identifier: Apache-2.0
 *
 * How close two rows of logits are, and what that is called.
 *
 *     sum/sum       sum (a - b)^2 / sum b^2                as test-backend-ops has it
 *     mean-removed  sum (a - b)^2 / sum (b - mean b)^2     as causal-verify-logits has it
 *
 * b is the other program's. What is -inf in both is a token that is excluded, and equal.
 */
#ifndef XM_PLUGIN_CLI_LOGITS_MATCH_H
#define XM_PLUGIN_CLI_LOGITS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_logits_match {
    double error;             /* sum (a - b)^2                */
    double square, variation; /* sum b^2, sum (b - mean b)^2  */
    double largest;           /* difference                   */
    double kld;               /* sum p_b (log p_b - log p_a)  */
    uint64_t likeliest, other_likeliest;
};
void xm_logits_compare(const float *a, const float *b, uint64_t n,
                       struct xm_logits_match *out);
/* 0 where there is no difference. */
double xm_nmse_sum(const struct xm_logits_match *m);
double xm_nmse(const struct xm_logits_match *m); /* mean-removed */

/* "excellent": what causal-verify-logits calls such a mean-removed error; static. */
const char *xm_nmse_label(double nmse);
bool xm_nmse_passes(double nmse);

/* The `n` likeliest tokens of a row, in order; fewer where it has fewer: how many. */
uint64_t xm_logits_top(const float *row, uint64_t vocabulary, uint64_t *ids, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
