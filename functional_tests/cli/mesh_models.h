/* SPDX-License-Identifier: Apache-2.0
 *
 * The small models that the tests of meshes split over devices and processes.
 */
#ifndef XM_FUNCTIONAL_TESTS_CLI_MESH_MODELS_H
#define XM_FUNCTIONAL_TESTS_CLI_MESH_MODELS_H

#include <vector>

const std::vector<const char *> mesh_models = {
    "qwen3moe-tiny/ov/int4_asym_g64",
    "qwen3moe-tiny/ov/int4_asym_g128_r1",
    "qwen3moe-tiny/ov/int4_sym_g64",
    "qwen3moe-tiny/ov/int8_asym",
    "qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf",
    "qwen3moe-tiny/gguf/qwen3moe-tiny-IQ4_NL.gguf",
    "qwen3moe-tiny/gguf/qwen3moe-tiny-Q2_K.gguf",
    "gpt-oss-tiny/ov/int4_sym_g64",
    "gpt-oss-tiny/gguf/gpt-oss-tiny-MXFP4_MOE.gguf",
    "gemma4-moe-tiny/ov/int4_asym_g32",
    "gemma4-moe-tiny/gguf/gemma4-moe-tiny-Q4_K_M.gguf",
    "gemma4-e-tiny/ov/int4_asym_g64",
    "gemma4-e-tiny/gguf/gemma4-e-tiny-Q4_0.gguf"};

#endif
