/* SPDX-License-Identifier: Apache-2.0
 *
 * KL divergence of a model's token distributions from those of a base model, with the statistics
 * that llama-perplexity prints.
 *
 * Three numbers for each position of a text:
 *
 *     D           sum of p_base (log p_base - log p), over the tokens with log p_base > -16
 *     Δp          p - p_base of the token that follows
 *     same top    whether both models have the same most likely token
 */
#ifndef XM_PLUGIN_LOGITS_KLD_H
#define XM_PLUGIN_LOGITS_KLD_H

#include "plugin/logits/distribution.h"
#include "plugin/logits/kld_base.h"
#include "plugin/program_util/json_out.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise. */
struct xm_kld {
    /* owned; D and Δp of each position; xm_kld_sum_up sorts them */
    float *divergence, *dp;
    size_t n, capacity, dp_capacity;
    uint64_t n_same_top;
    /* sums of -log p of both models, of their squares and of their products */
    double nll, nll2, nll_base, nll_base2, nll_both;
    double kld, kld2, dp1, dp2, dp4; /* sums of powers of D and of Δp */
};
/* Adds a position: its row of logits, the base model's row, and the next token of the text. */
enum xm_status xm_kld_add(struct xm_kld *k, const float *logits, uint32_t vocabulary,
                          const struct xm_kld_row *base, int32_t token,
                          struct xm_error *err);
void xm_kld_free(struct xm_kld *k);

/* Statistics of all positions so far. */
struct xm_kld_summary {
    struct xm_estimate ppl, ppl_base, ln_ratio, ratio, difference;
    /* the last three as fractions of 1 */
    struct xm_estimate divergence, dp, dp_rms, same_top;
    double correlation; /* between the logarithms of both perplexities */
};
void xm_kld_sum_up(const struct xm_kld *k, struct xm_kld_summary *out);

/* Returns the quantile `part` (0..1) of n sorted values, interpolated linearly. */
double xm_kld_quantile(const float *values, size_t n, double part);

/* Appends the line of a chunk; for chunk 0 the header of the table. */
void xm_kld_print_chunk(const struct xm_kld *k, uint32_t chunk, struct xm_strbuf *out);
/* Append all statistics, as text or JSON; both sort the values. */
void xm_kld_print(struct xm_kld *k, struct xm_strbuf *out);
void xm_kld_add_json(struct xm_kld *k, struct xm_json_out *j);

#ifdef __cplusplus
}
#endif
#endif
