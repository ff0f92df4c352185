/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a model's distributions are from those of another: what llama-perplexity says of them.
 *
 * Of each token: D = sum p_base (log p_base - log p) over tokens with log p_base > -16, how much
 * likelier the token that follows is than for the base (Δp), and whether the likeliest one is the
 * same.
 */
#ifndef XM_PLUGIN_CLI_KLD_H
#define XM_PLUGIN_CLI_KLD_H

#include "plugin/cli/distribution.h"
#include "plugin/cli/kld_base.h"
#include "plugin/program_util/json_out.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise. */
struct xm_kld {
    float *divergence, *dp; /* of each token, owned; in order once summed up */
    size_t n, capacity, dp_capacity;
    uint64_t n_same_top;
    double nll, nll2, nll_base, nll_base2, nll_both; /* sums, of squares, of products */
    double kld, kld2, dp1, dp2, dp4;
};
/* A row of logits, that of the base, the token that follows. */
enum xm_status xm_kld_add(struct xm_kld *k, const float *logits, uint32_t vocabulary,
                          const struct xm_kld_row *base, int32_t token,
                          struct xm_error *err);
void xm_kld_free(struct xm_kld *k);

/* Of all tokens so far. */
struct xm_kld_summary {
    struct xm_estimate ppl, ppl_base, ln_ratio, ratio, difference;
    struct xm_estimate divergence, dp, dp_rms, same_top; /* parts of 1 */
    double correlation; /* of the logs of both perplexities */
};
void xm_kld_sum_up(const struct xm_kld *k, struct xm_kld_summary *out);

/* Of values in order: between neighbours it is linear. */
double xm_kld_quantile(const float *values, size_t n, double part);

/* A line of the table: its header where `chunk` is 0. */
void xm_kld_print_chunk(const struct xm_kld *k, uint32_t chunk, struct xm_strbuf *out);
/* All statistics; these two put the values in order. */
void xm_kld_print(struct xm_kld *k, struct xm_strbuf *out);
void xm_kld_add_json(struct xm_kld *k, struct xm_json_out *j);

#ifdef __cplusplus
}
#endif
#endif
