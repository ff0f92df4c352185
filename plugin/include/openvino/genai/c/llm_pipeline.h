/* SPDX-License-Identifier: Apache-2.0
 *
 * From a model's folder and a prompt to text.
 *
 * Arguments that are missing give INVALID_C_PARAM, any other failure UNKNOW_EXCEPTION; its sentence
 * goes to the log (ov_util_set_log_callback), ov_get_last_err_msg() stays as it was. Calls for one
 * pipeline from several threads come one after the other. Results never change: any thread may read
 * them, until one frees them.
 */
#ifndef OPENVINO_GENAI_C_LLM_PIPELINE_H
#define OPENVINO_GENAI_C_LLM_PIPELINE_H

#include "openvino/c/ov_common.h"
#include "openvino/genai/c/chat_history.h"
#include "openvino/genai/c/generation_config.h"
#include "openvino/genai/c/perf_metrics.h"
#include "openvino/genai/c/visibility.h"

/* ---- texts as they come ---- */

#ifndef OV_GENAI_STREAMING_STATUS_DEFINED
#define OV_GENAI_STREAMING_STATUS_DEFINED
typedef enum {
    OV_GENAI_STREAMING_STATUS_RUNNING = 0,
    OV_GENAI_STREAMING_STATUS_STOP = 1, /* no more tokens; a chat keeps what there is   */
    OV_GENAI_STREAMING_STATUS_CANCEL = 2 /* the same; a chat forgets prompt and answer  */
} ov_genai_streaming_status_e;
#endif

/* As older releases spell it. */
#define ov_genai_streamming_status_e       ov_genai_streaming_status_e
#define OV_GENAI_STREAMMING_STATUS_RUNNING OV_GENAI_STREAMING_STATUS_RUNNING
#define OV_GENAI_STREAMMING_STATUS_STOP    OV_GENAI_STREAMING_STATUS_STOP
#define OV_GENAI_STREAMMING_STATUS_CANCEL  OV_GENAI_STREAMING_STATUS_CANCEL

#ifndef OV_GENAI_STREAMER_CALLBACK_DEFINED
#define OV_GENAI_STREAMER_CALLBACK_DEFINED
/* Called with each piece of text: whole characters, which together are the result's text. It may
 * come once more behind a STOP, with what was held back. */
typedef struct {
    ov_genai_streaming_status_e(OPENVINO_C_API_CALLBACK *callback_func)(const char *str,
                                                                        void *args);
    void *args;
} streamer_callback;
#endif

/* ---- results ---- */

typedef struct ov_genai_decoded_results_opaque ov_genai_decoded_results;

/* Without a text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_decoded_results_create(ov_genai_decoded_results **results);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_decoded_results_free(ov_genai_decoded_results *results);
/* A copy, for ov_genai_decoded_results_perf_metrics_free. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_decoded_results_get_perf_metrics(
    const ov_genai_decoded_results *results, ov_genai_perf_metrics **metrics);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_decoded_results_perf_metrics_free(ov_genai_perf_metrics *metrics);
/* The text; several with newlines between them. *output_size is the buffer's size and becomes that
 * of the text, in bytes with the NUL. output NULL: only the size is wanted. A smaller buffer is
 * OUT_OF_BOUNDS, and stays as it was. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_decoded_results_get_string(
    const ov_genai_decoded_results *results, char *output, size_t *output_size);

/* ---- the pipeline ---- */

typedef struct ov_genai_llm_pipeline_opaque ov_genai_llm_pipeline;

/* Properties are pairs of texts, property_args_size arguments in all: those of a compiled model,
 * ATTENTION_BACKEND (PA or SDPA, both the same here), prompt_lookup (YES: texts whose config says
 * nothing of it guess 5 tokens by 3). */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_create(
    const char *models_path, const char *device, size_t property_args_size,
    ov_genai_llm_pipeline **pipe, ...);
/* Waits for a run of another thread. By a streamer of its own: when the run has ended. */
OPENVINO_GENAI_C_EXPORTS void ov_genai_llm_pipeline_free(ov_genai_llm_pipeline *pipe);

/* A model with a chat template gets the prompt as one message of a user, any other as it is. config
 * NULL: the pipeline's. One of streamer and results may be NULL. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_generate(
    ov_genai_llm_pipeline *pipe, const char *inputs,
    const ov_genai_generation_config *config, const streamer_callback *streamer,
    ov_genai_decoded_results **results);
/* The answer is not added to the history. A model without a chat template fails. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_generate_with_history(
    ov_genai_llm_pipeline *pipe, const ov_genai_chat_history *history,
    const ov_genai_generation_config *config, const streamer_callback *streamer,
    ov_genai_decoded_results **results);
/* From here to finish_chat prompts of generate are messages of one chat. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_llm_pipeline_start_chat(ov_genai_llm_pipeline *pipe);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_llm_pipeline_finish_chat(ov_genai_llm_pipeline *pipe);

/* A copy, with the ids that end the model's texts. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_get_generation_config(
    const ov_genai_llm_pipeline *pipe, ov_genai_generation_config **config);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_set_generation_config(
    ov_genai_llm_pipeline *pipe, ov_genai_generation_config *config);

#endif
