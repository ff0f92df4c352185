/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model's config.json says of its dimensions, or the keys of a GGUF file
 * (plugin/text/gguf/gguf_text.h).
 *
 * config.json is the training library's and comes along with an exported model; what runs a model
 * takes no more of it than the context, to warn of what lies beyond. The same thing has several
 * names there, and models of text and images keep those of the text in an object of its own
 * ("text_config"), which is looked at first. What is no positive whole number counts as not said.
 */
#ifndef XM_PLUGIN_TEXT_HYPER_PARAMETERS_H
#define XM_PLUGIN_TEXT_HYPER_PARAMETERS_H

#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or "": not said. */
struct xm_hyper_parameters {
    char model_type[64], architecture[96]; /* "qwen3_moe", "Qwen3MoeForCausalLM"      */
    uint32_t context;                      /* positions the model was trained for     */
    uint32_t layers, hidden, heads, kv_heads, head_size, vocabulary;
    uint32_t experts, top_k, expert_width;
    uint32_t window; /* of sliding attention                   */
};

/* From the folder's config.json. XM_NOT_FOUND: there is none; *out is all zeros on failure. */
enum xm_status xm_hyper_parameters_load(const char *folder,
                                        struct xm_hyper_parameters *out,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
