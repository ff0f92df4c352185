/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two rows of logits, a and b, by normalised mean square errors (NMSE):
 *
 *     sum/sum       sum (a - b)^2 / sum b^2                as ggml's test-backend-ops
 *     mean-removed  sum (a - b)^2 / sum (b - mean b)^2     as llama.cpp's causal-verify-logits
 *
 * b is the other program's row. A token that is -infinity in both rows counts as equal.
 */
#ifndef XM_PLUGIN_LOGITS_LOGITS_MATCH_H
#define XM_PLUGIN_LOGITS_LOGITS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_logits_match {
    double error;             /* sum (a - b)^2                */
    double square, variation; /* sum b^2, sum (b - mean b)^2  */
    double largest;           /* largest |a - b|              */
    double kld;               /* sum p_b (log p_b - log p_a)  */
    uint64_t likeliest, other_likeliest;
};
void xm_logits_compare(const float *a, const float *b, uint64_t n,
                       struct xm_logits_match *out);
/* Both are 0 for equal rows, also if the rows are zeros. */
double xm_nmse_sum(const struct xm_logits_match *m);
double xm_nmse(const struct xm_logits_match *m); /* mean-removed */

/* Returns the verdict on a mean-removed error, by the thresholds of causal-verify-logits: a static
 * word such as "excellent", and whether it passes. */
const char *xm_nmse_label(double nmse);
bool xm_nmse_passes(double nmse);

/* Writes the ids of the `n` most likely tokens into ids[n], the most likely first. Returns their
 * number, which is below n if the vocabulary is smaller. */
uint64_t xm_logits_top(const float *row, uint64_t vocabulary, uint64_t *ids, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
