/* SPDX-License-Identifier: Apache-2.0
 *
 * Performance metrics of generations. Times are in milliseconds: the mean and the standard
 * deviation of the measured values, to which ov_genai_perf_metrics_add_in_place adds more. The
 * deviation of a single value is 0. Both are -1 if nothing was measured. Metrics are used by one
 * thread at a time.
 */
#ifndef OPENVINO_GENAI_C_PERF_METRICS_H
#define OPENVINO_GENAI_C_PERF_METRICS_H

#include "openvino/c/ov_common.h"
#include "openvino/genai/c/visibility.h"

typedef struct ov_genai_perf_metrics_opaque ov_genai_perf_metrics;

/* The time that creating the pipeline took: a single value. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_load_time(
    const ov_genai_perf_metrics *metrics, float *load_time);
/* The number of new tokens, including the token that ends a text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_num_generation_tokens(
    const ov_genai_perf_metrics *metrics, size_t *num_generation_tokens);
/* The number of the prompt's tokens, including those that the chat template adds. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_num_input_tokens(
    const ov_genai_perf_metrics *metrics, size_t *num_input_tokens);
/* Time from the call to the first token. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_ttft(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time per token after the first. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_tpot(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time of the model alone in one run. A run computes one token, or several with prompt lookup. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_ipot(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Tokens per second, without the first token. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_throughput(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time of the model alone for a whole text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_inference_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time of a whole call of generate. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_generate_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_tokenization_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_detokenization_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Also -1 if no chat template was applied. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_chat_template_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Adds the counts and measured values of `right` to those of `left`; left's load time stays. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_add_in_place(
    ov_genai_perf_metrics *left, const ov_genai_perf_metrics *right);

#endif
