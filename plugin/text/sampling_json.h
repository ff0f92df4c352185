/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the sampling parameters of a JSON request. The names are in sampling.def: OpenAI's if its
 * API has the parameter, else llama.cpp's and vLLM's.
 *
 *     {"temperature": 0.7, "top_k": 40, "seed": 3, "logit_bias": {"15043": -100},
 *      "dry_sequence_breakers": ["\n"], "bad_words": ["foo"]}
 */
#ifndef XM_PLUGIN_TEXT_SAMPLING_JSON_H
#define XM_PLUGIN_TEXT_SAMPLING_JSON_H

#include <yyjson.h>

#include "plugin/text/sampling_lists.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the parameters that the object has. Other parameters keep the caller's values; null members
 * and members that are no parameters are ignored. A whole number may be -1, which means 0 (none);
 * "seed": -1 keeps the caller's seed. *lists receives texts and biases, and *s points into it: it
 * must outlive *s. `tokenizer` NULL: members with texts are refused. XM_INVALID: a value has a
 * wrong type or is out of range; the error message begins with the member's name, and *s has the
 * parameters read before it. */
enum xm_status xm_sampling_from_json(yyjson_val *object,
                                     const struct xm_tokenizer *tokenizer,
                                     struct xm_sampling *s,
                                     struct xm_sampling_lists *lists,
                                     struct xm_error *err);
/* Returns whether the name, n bytes, is that of a sampling parameter. */
bool xm_sampling_is_json_name(const char *name, size_t n);

#ifdef __cplusplus
}
#endif
#endif
