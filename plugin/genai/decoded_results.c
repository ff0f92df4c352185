/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of a generation: texts, probabilities, metrics.
 */
#include "plugin/genai/genai.h"
#include "xemoe/xemoe.h"

ov_status_e
ov_genai_decoded_results_create(ov_genai_decoded_results **results)
{
    struct xm_error err = {0};
    if (!results)
        return INVALID_C_PARAM;
    ov_genai_decoded_results *r = xm_calloc(1, sizeof(*r));
    if (r && xm_api_handle_add(r, XM_API_RESULTS)) {
        *results = r;
        return OK;
    }
    xm_free(r);
    xm_no_memory(&err, "results");
    return xm_genai_status(&err);
}

void
ov_genai_decoded_results_free(ov_genai_decoded_results *results)
{
    if (!xm_api_handle_drop(results, XM_API_RESULTS))
        return;
    for (size_t i = 0; i < results->n; i++)
        xm_generation_result_free(&results->texts[i]);
    xm_free(results->texts);
    xm_genai_metrics_clear(&results->metrics);
    xm_free(results);
}

ov_status_e
ov_genai_decoded_results_get_perf_metrics(const ov_genai_decoded_results *results,
                                          ov_genai_perf_metrics **metrics)
{
    struct xm_error err = {0};
    if (!xm_api_is(results, XM_API_RESULTS) || !metrics)
        return INVALID_C_PARAM;
    ov_genai_perf_metrics *m = xm_calloc(1, sizeof(*m));
    if (!m || !xm_api_handle_add(m, XM_API_METRICS)) {
        xm_free(m);
        xm_no_memory(&err, "metrics");
        return xm_genai_status(&err);
    }
    m->load_ms = results->metrics.load_ms;
    if (xm_genai_metrics_add(m, &results->metrics, &err) == XM_OK)
        *metrics = m;
    else
        ov_genai_decoded_results_perf_metrics_free(m);
    return xm_genai_status(&err);
}

void
ov_genai_decoded_results_perf_metrics_free(ov_genai_perf_metrics *metrics)
{
    if (!xm_api_handle_drop(metrics, XM_API_METRICS))
        return;
    xm_genai_metrics_clear(metrics);
    xm_free(metrics);
}

ov_status_e
ov_genai_decoded_results_get_string(const ov_genai_decoded_results *results, char *output,
                                    size_t *output_size)
{
    struct xm_error err = {0};
    struct xm_strbuf all = {0};
    if (!xm_api_is(results, XM_API_RESULTS) || !output_size)
        return INVALID_C_PARAM;
    for (size_t i = 0; i < results->n; i++) {
        const struct xm_strbuf *text = &results->texts[i].text;
        xm_strbuf_add(&all, i ? "\n" : "");
        xm_strbuf_add_n(&all, xm_strbuf_text(text), text->n);
    }
    bool fits = true;
    if (xm_strbuf_ok(&all))
        fits = xm_genai_give(&all, output, output_size);
    else
        xm_no_memory(&err, "the texts");
    xm_strbuf_free(&all);
    return fits ? xm_genai_status(&err) : OUT_OF_BOUNDS;
}

ov_status_e
xm_genai_results_logprobs(const ov_genai_decoded_results *results, size_t sequence,
                          const float **values, size_t *n)
{
    if (!xm_api_is(results, XM_API_RESULTS) || !values || !n)
        return INVALID_C_PARAM;
    if (sequence >= results->n)
        return OUT_OF_BOUNDS;
    *values = results->texts[sequence].log_probs.values;
    *n = results->texts[sequence].log_probs.n;
    return OK;
}
