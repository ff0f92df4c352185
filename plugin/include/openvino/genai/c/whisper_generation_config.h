/* SPDX-License-Identifier: Apache-2.0
 *
 * Configs for transcribing speech: only the type is declared, because this library has no such
 * pipeline.
 */
#ifndef OPENVINO_GENAI_C_WHISPER_GENERATION_CONFIG_H
#define OPENVINO_GENAI_C_WHISPER_GENERATION_CONFIG_H

typedef struct ov_genai_whisper_generation_config_opaque
    ov_genai_whisper_generation_config;

#endif
