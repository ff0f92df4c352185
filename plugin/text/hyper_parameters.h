/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's dimensions, from its config.json or from the keys of a GGUF file
 * (plugin/text/gguf/gguf_text.h).
 *
 * config.json is written by the training library and copied into an exported model. Running a model
 * does not need it: the trained context length is used for warnings, the other members for `xemoe
 * info` and `xemoe list`. config.json may have one of several names for a dimension. Models of text
 * and images keep the text model's dimensions in the object "text_config", which is read first. A
 * value that is not a positive whole number counts as not given.
 */
#ifndef XM_PLUGIN_TEXT_HYPER_PARAMETERS_H
#define XM_PLUGIN_TEXT_HYPER_PARAMETERS_H

#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model's dimensions; 0 or "": not given. */
struct xm_hyper_parameters {
    char model_type[64], architecture[96]; /* "qwen3_moe", "Qwen3MoeForCausalLM"       */
    uint32_t context;                      /* positions that the model was trained for */
    uint32_t layers, hidden, heads, kv_heads, head_size, vocabulary;
    uint32_t experts, top_k, expert_width;
    uint32_t window; /* positions that sliding-window attention sees */
};

/* Reads the folder's config.json. XM_NOT_FOUND: there is no such file. On failure *out is all
 * zeros. */
enum xm_status xm_hyper_parameters_load(const char *folder,
                                        struct xm_hyper_parameters *out,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
