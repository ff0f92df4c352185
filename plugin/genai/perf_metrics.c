/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of generations: lists of measured values; means and deviations are computed on
 * request.
 */
#include <math.h>

#include "plugin/genai/genai.h"
#include "runtime/util/memory.h"

static const float NOT_MEASURED = -1.0f;

/* Reserves memory for `n` more values. */
static bool
reserve(struct xm_genai_values *v, size_t n)
{
    double *grown = xm_grow(v->ms, &v->capacity, v->n + n, sizeof(*grown));
    if (grown)
        v->ms = grown;
    return grown != NULL;
}

bool
xm_genai_values_add(struct xm_genai_values *v, double ms)
{
    if (!reserve(v, 1))
        return false;
    v->ms[v->n++] = ms;
    return true;
}

void
xm_genai_metrics_clear(ov_genai_perf_metrics *m)
{
    for (size_t i = 0; i < XM_GENAI_N_MEASURES; i++)
        xm_free(m->values[i].ms);
    *m = (ov_genai_perf_metrics){0};
}

enum xm_status
xm_genai_metrics_add(ov_genai_perf_metrics *to, const ov_genai_perf_metrics *from,
                     struct xm_error *err)
{
    for (size_t i = 0; i < XM_GENAI_N_MEASURES; i++)
        if (!reserve(&to->values[i], from->values[i].n))
            return xm_no_memory(err, "metrics");
    for (size_t i = 0; i < XM_GENAI_N_MEASURES; i++) {
        /* fixed before the loop, because `to` may be `from` */
        const size_t n = from->values[i].n;
        for (size_t k = 0; k < n; k++)
            xm_genai_values_add(&to->values[i], from->values[i].ms[k]);
    }
    to->generated += from->generated;
    to->input += from->input;
    return XM_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static double
mean_of(const struct xm_genai_values *v)
{
    double sum = 0.0;
    for (size_t i = 0; i < v->n; i++)
        sum += v->ms[i];
    return sum / (double)v->n;
}

static double
deviation(const struct xm_genai_values *v)
{
    const double mean = mean_of(v);
    double sum = 0.0;
    for (size_t i = 0; i < v->n; i++)
        sum += (v->ms[i] - mean) * (v->ms[i] - mean);
    return sqrt(sum / (double)v->n);
}

static ov_status_e
give(const ov_genai_perf_metrics *m, enum xm_genai_measure which, float *mean, float *std)
{
    if (!xm_api_is(m, XM_API_METRICS) || !mean || !std)
        return INVALID_C_PARAM;
    const struct xm_genai_values *v = &m->values[which];
    *mean = v->n ? (float)mean_of(v) : NOT_MEASURED;
    *std = v->n ? (float)deviation(v) : NOT_MEASURED;
    return OK;
}

/* clang-format off */
#define MEASURE(name, which)                                                             \
    ov_status_e ov_genai_perf_metrics_get_##name(const ov_genai_perf_metrics *metrics,   \
                                                 float *mean, float *std)                \
    {                                                                                    \
        return give(metrics, which, mean, std);                                          \
    }
MEASURE(ttft,                      XM_GENAI_TTFT)
MEASURE(tpot,                      XM_GENAI_TPOT)
MEASURE(ipot,                      XM_GENAI_IPOT)
MEASURE(inference_duration,        XM_GENAI_INFERENCE)
MEASURE(generate_duration,         XM_GENAI_GENERATE)
MEASURE(tokenization_duration,     XM_GENAI_TOKENISE)
MEASURE(detokenization_duration,   XM_GENAI_DETOKENISE)
MEASURE(chat_template_duration,    XM_GENAI_TEMPLATE)
#undef MEASURE
/* clang-format on */

/* The deviation of the throughput is computed from that of the times, by propagation to the mean's
 * rate, because rates of single tokens mean nothing if a run computes several. */
ov_status_e
ov_genai_perf_metrics_get_throughput(const ov_genai_perf_metrics *metrics, float *mean,
                                     float *std)
{
    if (!xm_api_is(metrics, XM_API_METRICS) || !mean || !std)
        return INVALID_C_PARAM;
    const struct xm_genai_values *v = &metrics->values[XM_GENAI_TPOT];
    const double time = v->n ? mean_of(v) : 0.0;
    *mean = time > 0.0 ? (float)(1000.0 / time) : NOT_MEASURED;
    *std = time > 0.0 ? (float)(1000.0 * deviation(v) / (time * time)) : NOT_MEASURED;
    return OK;
}

ov_status_e
ov_genai_perf_metrics_get_load_time(const ov_genai_perf_metrics *metrics,
                                    float *load_time)
{
    if (!xm_api_is(metrics, XM_API_METRICS) || !load_time)
        return INVALID_C_PARAM;
    *load_time = (float)metrics->load_ms;
    return OK;
}

ov_status_e
ov_genai_perf_metrics_get_num_generation_tokens(const ov_genai_perf_metrics *metrics,
                                                size_t *num_generation_tokens)
{
    if (!xm_api_is(metrics, XM_API_METRICS) || !num_generation_tokens)
        return INVALID_C_PARAM;
    *num_generation_tokens = metrics->generated;
    return OK;
}

ov_status_e
ov_genai_perf_metrics_get_num_input_tokens(const ov_genai_perf_metrics *metrics,
                                           size_t *num_input_tokens)
{
    if (!xm_api_is(metrics, XM_API_METRICS) || !num_input_tokens)
        return INVALID_C_PARAM;
    *num_input_tokens = metrics->input;
    return OK;
}

ov_status_e
ov_genai_perf_metrics_add_in_place(ov_genai_perf_metrics *left,
                                   const ov_genai_perf_metrics *right)
{
    struct xm_error err = {0};
    if (!xm_api_is(left, XM_API_METRICS) || !xm_api_is(right, XM_API_METRICS))
        return INVALID_C_PARAM;
    xm_genai_metrics_add(left, right, &err);
    return xm_genai_status(&err);
}
