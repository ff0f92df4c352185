/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates text from a model's folder and a prompt.
 *
 * A missing argument gives INVALID_C_PARAM, any other failure UNKNOW_EXCEPTION, whose sentence
 * ov_get_last_err_msg() returns and the log has (ov_util_set_log_callback). Calls on one pipeline
 * from several threads run one after the other. Results are immutable: any thread may read them
 * until one thread frees them.
 */
#ifndef OPENVINO_GENAI_C_LLM_PIPELINE_H
#define OPENVINO_GENAI_C_LLM_PIPELINE_H

#include "openvino/c/ov_common.h"
#include "openvino/genai/c/chat_history.h"
#include "openvino/genai/c/generation_config.h"
#include "openvino/genai/c/perf_metrics.h"
#include "openvino/genai/c/visibility.h"

/* ---- streaming of texts ---- */

#ifndef OV_GENAI_STREAMING_STATUS_DEFINED
#define OV_GENAI_STREAMING_STATUS_DEFINED
typedef enum {
    OV_GENAI_STREAMING_STATUS_RUNNING = 0,
    OV_GENAI_STREAMING_STATUS_STOP =
        1, /* generate no more; a chat keeps the text so far */
    OV_GENAI_STREAMING_STATUS_CANCEL =
        2 /* as STOP; a chat forgets the prompt and answer */
} ov_genai_streaming_status_e;
#endif

/* The spelling of older releases. */
#define ov_genai_streamming_status_e       ov_genai_streaming_status_e
#define OV_GENAI_STREAMMING_STATUS_RUNNING OV_GENAI_STREAMING_STATUS_RUNNING
#define OV_GENAI_STREAMMING_STATUS_STOP    OV_GENAI_STREAMING_STATUS_STOP
#define OV_GENAI_STREAMMING_STATUS_CANCEL  OV_GENAI_STREAMING_STATUS_CANCEL

#ifndef OV_GENAI_STREAMER_CALLBACK_DEFINED
#define OV_GENAI_STREAMER_CALLBACK_DEFINED
/* Called with each piece of text. A piece has whole characters; all pieces together are the text of
 * the result. After a STOP one more call may follow, with text that was held back. */
typedef struct {
    ov_genai_streaming_status_e(OPENVINO_C_API_CALLBACK *callback_func)(const char *str,
                                                                        void *args);
    void *args;
} streamer_callback;
#endif

/* ---- results ---- */

typedef struct ov_genai_decoded_results_opaque ov_genai_decoded_results;

/* Creates results without a text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_decoded_results_create(ov_genai_decoded_results **results);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_decoded_results_free(ov_genai_decoded_results *results);
/* Returns a copy of the metrics. Free it with ov_genai_decoded_results_perf_metrics_free(). */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_decoded_results_get_perf_metrics(
    const ov_genai_decoded_results *results, ov_genai_perf_metrics **metrics);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_decoded_results_perf_metrics_free(ov_genai_perf_metrics *metrics);
/* Writes the text; several texts are separated by newlines. *output_size is the size of the buffer
 * and becomes the size of the text, in bytes with the NUL. output NULL: only sets the size.
 * OUT_OF_BOUNDS: the buffer is too small and stays unchanged. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_decoded_results_get_string(
    const ov_genai_decoded_results *results, char *output, size_t *output_size);

/* ---- the pipeline ---- */

typedef struct ov_genai_llm_pipeline_opaque ov_genai_llm_pipeline;

/* Creates a pipeline. The properties are key and value texts, property_args_size arguments in all:
 * those of a compiled model, ATTENTION_BACKEND (PA or SDPA, which mean the same here), and
 * prompt_lookup. prompt_lookup YES: a generation config that does not set num_assistant_tokens
 * drafts 5 tokens by matching the last 3. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_create(
    const char *models_path, const char *device, size_t property_args_size,
    ov_genai_llm_pipeline **pipe, ...);
/* Frees the pipeline after runs of other threads have ended. A streamer may call it: then the
 * pipeline is freed when the run has ended. */
OPENVINO_GENAI_C_EXPORTS void ov_genai_llm_pipeline_free(ov_genai_llm_pipeline *pipe);

/* Generates from a prompt. If the model has a chat template, the prompt becomes one user message;
 * else it is used as it is. config NULL: the pipeline's own. Of `streamer` and `results` one may be
 * NULL. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_generate(
    ov_genai_llm_pipeline *pipe, const char *inputs,
    const ov_genai_generation_config *config, const streamer_callback *streamer,
    ov_genai_decoded_results **results);
/* Generates from the messages of a history. The answer is not added to the history. Fails if the
 * model has no chat template. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_generate_with_history(
    ov_genai_llm_pipeline *pipe, const ov_genai_chat_history *history,
    const ov_genai_generation_config *config, const streamer_callback *streamer,
    ov_genai_decoded_results **results);
/* Between start_chat and finish_chat, each prompt of generate is the next message of one chat. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_llm_pipeline_start_chat(ov_genai_llm_pipeline *pipe);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_llm_pipeline_finish_chat(ov_genai_llm_pipeline *pipe);

/* Returns a copy of the pipeline's config, including the ids that end the model's texts. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_get_generation_config(
    const ov_genai_llm_pipeline *pipe, ov_genai_generation_config **config);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_llm_pipeline_set_generation_config(
    ov_genai_llm_pipeline *pipe, ov_genai_generation_config *config);

#endif
