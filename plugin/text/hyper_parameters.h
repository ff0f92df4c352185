/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's dimensions as its config.json states them, or the keys of a GGUF file
 * (plugin/text/gguf/gguf_text.h).
 *
 * config.json is written by the training library and copied into an exported model. Running a model
 * needs nothing of it; the trained context is used for warnings, the other members for `xemoe info`
 * and `xemoe list`. A dimension may have several names there. Models of text and images keep the
 * text model's dimensions in the object "text_config", which is read first. A value that is not a
 * positive whole number counts as not given.
 */
#ifndef XM_PLUGIN_TEXT_HYPER_PARAMETERS_H
#define XM_PLUGIN_TEXT_HYPER_PARAMETERS_H

#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or "": not given. */
struct xm_hyper_parameters {
    char model_type[64], architecture[96]; /* "qwen3_moe", "Qwen3MoeForCausalLM"      */
    uint32_t context;                      /* positions the model was trained for     */
    uint32_t layers, hidden, heads, kv_heads, head_size, vocabulary;
    uint32_t experts, top_k, expert_width;
    uint32_t window; /* positions that sliding-window attention sees */
};

/* Reads the folder's config.json. XM_NOT_FOUND: there is none. *out is all zeros on failure. */
enum xm_status xm_hyper_parameters_load(const char *folder,
                                        struct xm_hyper_parameters *out,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
