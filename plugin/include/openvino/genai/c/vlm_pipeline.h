/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines for images: only the types are declared, because this library has no such pipeline.
 */
#ifndef OPENVINO_GENAI_C_VLM_PIPELINE_H
#define OPENVINO_GENAI_C_VLM_PIPELINE_H

typedef struct ov_genai_vlm_decoded_results_opaque ov_genai_vlm_decoded_results;
typedef struct ov_genai_vlm_pipeline_opaque ov_genai_vlm_pipeline;

#endif
