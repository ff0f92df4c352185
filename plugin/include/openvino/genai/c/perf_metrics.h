/* SPDX-License-Identifier: Apache-2.0
 *
 * What generating a text cost. Times are milliseconds: mean and standard deviation over what was
 * measured, which is more after ov_genai_perf_metrics_add_in_place; of one value the deviation is
 * 0. Both are -1 where nothing was measured. Used by one thread at a time.
 */
#ifndef OPENVINO_GENAI_C_PERF_METRICS_H
#define OPENVINO_GENAI_C_PERF_METRICS_H

#include "openvino/c/ov_common.h"
#include "openvino/genai/c/visibility.h"

typedef struct ov_genai_perf_metrics_opaque ov_genai_perf_metrics;

/* Of the pipeline, once. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_load_time(
    const ov_genai_perf_metrics *metrics, float *load_time);
/* New tokens, the one that ends a text among them. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_num_generation_tokens(
    const ov_genai_perf_metrics *metrics, size_t *num_generation_tokens);
/* Of the prompt, with what the chat template adds. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_num_input_tokens(
    const ov_genai_perf_metrics *metrics, size_t *num_input_tokens);
/* Time to the first token. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_ttft(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time per token after the first. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_tpot(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time of the model alone in a run, which gives a token, or several where they are guessed. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_ipot(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Tokens per second after the first. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_throughput(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Time of the model alone, of a whole text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_inference_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* Of a whole call. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_generate_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_tokenization_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_detokenization_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* -1 also where no template was applied. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_get_chat_template_duration(
    const ov_genai_perf_metrics *metrics, float *mean, float *std);
/* left += right: counts add up, times are pooled, the load time stays left's. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_perf_metrics_add_in_place(
    ov_genai_perf_metrics *left, const ov_genai_perf_metrics *right);

#endif
