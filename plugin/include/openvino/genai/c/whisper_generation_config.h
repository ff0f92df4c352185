/* SPDX-License-Identifier: Apache-2.0
 *
 * How speech is to be written down: the type only, this library has no pipeline for it.
 */
#ifndef OPENVINO_GENAI_C_WHISPER_GENERATION_CONFIG_H
#define OPENVINO_GENAI_C_WHISPER_GENERATION_CONFIG_H

typedef struct ov_genai_whisper_generation_config_opaque
    ov_genai_whisper_generation_config;

#endif
