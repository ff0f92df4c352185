/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/logits/kld.h"
#include "plugin/text/log_sum_exp.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/util/memory.h"

static const double deepest = -16.0; /* smallest log p_base of tokens in the divergence */
enum { FEW = 11 };                   /* fewer values have no standard error */

/* ---- one position -------------------------------------------------------------------------- */

static enum xm_status
make_room(struct xm_kld *k, struct xm_error *err)
{
    float *divergence =
        xm_grow(k->divergence, &k->capacity, k->n + 1, sizeof(*k->divergence));
    if (divergence)
        k->divergence = divergence;
    float *dp = xm_grow(k->dp, &k->dp_capacity, k->n + 1, sizeof(*k->dp));
    if (dp)
        k->dp = dp;
    return divergence && dp ? XM_OK : xm_no_memory(err, "divergences");
}

/* Returns the divergence of a position, and finds the base model's most likely token. */
static double
divergence_of(const float *logits, double log_sum, uint32_t vocabulary,
              const struct xm_kld_row *base, uint64_t *likeliest)
{
    double sum = 0.0, largest = -INFINITY;
    for (uint32_t i = 0; i < vocabulary; i++) {
        const double log_p = xm_kld_row_log_p(base, i);
        if (log_p > largest) {
            largest = log_p;
            *likeliest = i;
        }
        if (log_p > deepest)
            sum += exp(log_p) * (log_p - ((double)logits[i] - log_sum));
    }
    return sum;
}

enum xm_status
xm_kld_add(struct xm_kld *k, const float *logits, uint32_t vocabulary,
           const struct xm_kld_row *base, int32_t token, struct xm_error *err)
{
    uint64_t top_base = 0;
    const double log_sum = xm_log_sum_exp(logits, vocabulary);
    const double kld = divergence_of(logits, log_sum, vocabulary, base, &top_base);
    const double nll = log_sum - (double)logits[token];
    const double nll_base = -xm_kld_row_log_p(base, (uint64_t)token);
    const double dp = exp(-nll) - exp(-nll_base);
    XM_TRY(make_room(k, err));
    k->divergence[k->n] = (float)kld;
    k->dp[k->n++] = (float)dp;
    k->n_same_top += xm_likeliest(logits, vocabulary) == top_base;
    k->nll += nll;
    k->nll2 += nll * nll;
    k->nll_base += nll_base;
    k->nll_base2 += nll_base * nll_base;
    k->nll_both += nll * nll_base;
    k->kld += kld;
    k->kld2 += kld * kld;
    k->dp1 += dp;
    k->dp2 += dp * dp;
    k->dp4 += dp * dp * dp * dp;
    return XM_OK;
}

void
xm_kld_free(struct xm_kld *k)
{
    xm_free(k->divergence);
    xm_free(k->dp);
    *k = (struct xm_kld){0};
}

/* ---- all positions ------------------------------------------------------------------------- */

/* Returns the covariance of the means of nll and nll_base. */
static double
covariance(const struct xm_kld *k)
{
    const double n = (double)k->n;
    return k->n < FEW ? 0.0
                      : (k->nll_both / n - k->nll / n * (k->nll_base / n)) / (n - 1.0);
}

/* Returns the error of the difference of two correlated values. */
static double
difference_error(double a, double b, double covariance)
{
    const double variance = a * a + b * b - 2.0 * covariance;
    return variance > 0.0 ? sqrt(variance) : 0.0;
}

static struct xm_estimate
part_of(uint64_t n, uint64_t all)
{
    const double part = all ? (double)n / (double)all : 0.0;
    return (struct xm_estimate){
        part, all > 1 ? sqrt(part * (1.0 - part) / (double)(all - 1)) : 0.0};
}

/* Returns the root of an estimate: sqrt(x) ± dx / (2 sqrt(x)). */
static struct xm_estimate
root_of(struct xm_estimate e)
{
    const double root = sqrt(e.value);
    return (struct xm_estimate){root, root > 0.0 ? 0.5 / root * e.error : 0.0};
}

void
xm_kld_sum_up(const struct xm_kld *k, struct xm_kld_summary *out)
{
    const struct xm_estimate nll = xm_estimate_of(k->nll, k->nll2, k->n, FEW);
    const struct xm_estimate base = xm_estimate_of(k->nll_base, k->nll_base2, k->n, FEW);
    const double cov = covariance(k), errors = nll.error * base.error;
    out->ppl = xm_estimate_exp(nll);
    out->ppl_base = xm_estimate_exp(base);
    out->ln_ratio = (struct xm_estimate){nll.value - base.value,
                                         difference_error(nll.error, base.error, cov)};
    out->ratio = xm_estimate_exp(out->ln_ratio);
    out->difference = (struct xm_estimate){
        out->ppl.value - out->ppl_base.value,
        difference_error(out->ppl.error, out->ppl_base.error,
                         out->ppl.value * out->ppl_base.value * cov)};
    out->correlation = errors > 0.0 ? cov / errors : 0.0;
    out->divergence = xm_estimate_of(k->kld, k->kld2, k->n, FEW);
    out->dp = xm_estimate_of(k->dp1, k->dp2, k->n, FEW);
    out->dp_rms = root_of(xm_estimate_of(k->dp2, k->dp4, k->n, FEW));
    out->same_top = part_of(k->n_same_top, k->n);
}

static int
by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void
put_in_order(struct xm_kld *k)
{
    qsort(k->divergence, k->n, sizeof(*k->divergence), by_value);
    qsort(k->dp, k->n, sizeof(*k->dp), by_value);
}

double
xm_kld_quantile(const float *values, size_t n, double part)
{
    const double at = part * (double)(n - 1);
    const size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;
    const double rest = at - (double)below;
    return (1.0 - rest) * (double)values[below] + rest * (double)values[above];
}

/* ---- print ------------------------------------------------------------------------- */

void
xm_kld_print_chunk(const struct xm_kld *k, uint32_t chunk, struct xm_strbuf *out)
{
    struct xm_kld_summary s;
    if (chunk == 0) {
        xm_strbuf_add(out, "chunk             PPL               ln(PPL(Q)/PPL(base))"
                           "          KL Divergence              Δp RMS            Same "
                           "top p\n");
        return;
    }
    xm_kld_sum_up(k, &s);
    xm_strbuf_printf(out, "%4" PRIu32 "    %9.4f ± %9.4f    %10.5f ± %10.5f", chunk,
                     s.ppl.value, s.ppl.error, s.ln_ratio.value, s.ln_ratio.error);
    xm_strbuf_printf(out, "    %10.5f ± %10.5f    %6.3f ± %6.3f %%    %6.3f ± %6.3f %%\n",
                     s.divergence.value, s.divergence.error, 100.0 * s.dp_rms.value,
                     100.0 * s.dp_rms.error, 100.0 * s.same_top.value,
                     100.0 * s.same_top.error);
}

/* clang-format off */
static const struct quantile {
    const char *text, *key;
    double part;
    bool of_divergences; /* quantile of the divergences too, else only of Δp */
} quantiles[] = {
    { "Maximum", "maximum", 1.0,   true  },
    { "99.9%  ", "p99.9",   0.999, true  },
    { "99.0%  ", "p99",     0.990, true  },
    { "95.0%  ", "p95",     0.950, true  },
    { "90.0%  ", "p90",     0.900, true  },
    { "75.0%  ", "p75",     0.750, false },
    { "Median ", "median",  0.500, true  },
    { "25.0%  ", "p25",     0.250, false },
    { "10.0%  ", "p10",     0.100, true  },
    { " 5.0%  ", "p5",      0.050, true  },
    { " 1.0%  ", "p1",      0.010, true  },
    { " 0.1%  ", "p0.1",    0.001, true  },
    { "Minimum", "minimum", 0.0,   true  },
};
/* clang-format on */

static void
print_perplexities(const struct xm_kld_summary *s, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "\n====== Perplexity statistics ======\n");
    xm_strbuf_printf(out, "Mean PPL(Q)                   : %10.6f ± %10.6f\n",
                     s->ppl.value, s->ppl.error);
    xm_strbuf_printf(out, "Mean PPL(base)                : %10.6f ± %10.6f\n",
                     s->ppl_base.value, s->ppl_base.error);
    xm_strbuf_printf(out, "Cor(ln(PPL(Q)), ln(PPL(base))): %6.2f%%\n",
                     100.0 * s->correlation);
    xm_strbuf_printf(out, "Mean ln(PPL(Q)/PPL(base))     : %10.6f ± %10.6f\n",
                     s->ln_ratio.value, s->ln_ratio.error);
    xm_strbuf_printf(out, "Mean PPL(Q)/PPL(base)         : %10.6f ± %10.6f\n",
                     s->ratio.value, s->ratio.error);
    xm_strbuf_printf(out, "Mean PPL(Q)-PPL(base)         : %10.6f ± %10.6f\n",
                     s->difference.value, s->difference.error);
}

void
xm_kld_print(struct xm_kld *k, struct xm_strbuf *out)
{
    struct xm_kld_summary s;
    xm_kld_sum_up(k, &s);
    put_in_order(k);
    print_perplexities(&s, out);
    xm_strbuf_add(out, "\n====== KL divergence statistics ======\n");
    xm_strbuf_printf(out, "Mean    KLD: %10.6f ± %10.6f\n", s.divergence.value,
                     s.divergence.error);
    for (size_t i = 0; i < XM_ARRAY_LEN(quantiles); i++) {
        if (quantiles[i].of_divergences)
            xm_strbuf_printf(out, "%s KLD: %10.6f\n", quantiles[i].text,
                             xm_kld_quantile(k->divergence, k->n, quantiles[i].part));
    }
    xm_strbuf_add(out, "\n====== Token probability statistics ======\n");
    xm_strbuf_printf(out, "Mean    Δp: %6.3f ± %5.3f %%\n", 100.0 * s.dp.value,
                     100.0 * s.dp.error);
    for (size_t i = 0; i < XM_ARRAY_LEN(quantiles); i++)
        xm_strbuf_printf(out, "%s Δp: %6.3f%%\n", quantiles[i].text,
                         100.0 * xm_kld_quantile(k->dp, k->n, quantiles[i].part));
    xm_strbuf_printf(out, "RMS Δp    : %6.3f ± %5.3f %%\n", 100.0 * s.dp_rms.value,
                     100.0 * s.dp_rms.error);
    xm_strbuf_printf(out, "Same top p: %6.3f ± %5.3f %%\n", 100.0 * s.same_top.value,
                     100.0 * s.same_top.error);
}

static void
add_estimate(struct xm_json_out *j, const char *key, struct xm_estimate e)
{
    yyjson_mut_val *o = xm_json_add_object(j, NULL, key);
    xm_json_add_real(j, o, "value", e.value);
    xm_json_add_real(j, o, "error", e.error);
}

void
xm_kld_add_json(struct xm_kld *k, struct xm_json_out *j)
{
    struct xm_kld_summary s;
    xm_kld_sum_up(k, &s);
    put_in_order(k);
    add_estimate(j, "ppl", s.ppl);
    add_estimate(j, "ppl_base", s.ppl_base);
    add_estimate(j, "ln_ppl_ratio", s.ln_ratio);
    add_estimate(j, "ppl_ratio", s.ratio);
    add_estimate(j, "ppl_difference", s.difference);
    xm_json_add_real(j, NULL, "ln_ppl_correlation", s.correlation);
    add_estimate(j, "kld", s.divergence);
    add_estimate(j, "dp", s.dp);
    add_estimate(j, "dp_rms", s.dp_rms);
    add_estimate(j, "same_top", s.same_top);
    yyjson_mut_val *kld = xm_json_add_object(j, NULL, "kld_quantiles");
    yyjson_mut_val *dp = xm_json_add_object(j, NULL, "dp_quantiles");
    for (size_t i = 0; i < XM_ARRAY_LEN(quantiles); i++) {
        const struct quantile *q = &quantiles[i];
        if (q->of_divergences)
            xm_json_add_real(j, kld, q->key,
                             xm_kld_quantile(k->divergence, k->n, q->part));
        xm_json_add_real(j, dp, q->key, xm_kld_quantile(k->dp, k->n, q->part));
    }
}
