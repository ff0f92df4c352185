/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines for speech: only the types are declared, because this library has no such pipeline.
 */
#ifndef OPENVINO_GENAI_C_WHISPER_PIPELINE_H
#define OPENVINO_GENAI_C_WHISPER_PIPELINE_H

typedef struct ov_genai_whisper_decoded_result_chunk_opaque
    ov_genai_whisper_decoded_result_chunk;
typedef struct ov_genai_whisper_decoded_results_opaque ov_genai_whisper_decoded_results;
typedef struct ov_genai_whisper_pipeline_opaque ov_genai_whisper_pipeline;

#endif
