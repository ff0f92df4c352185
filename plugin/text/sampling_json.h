/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling parameters of a request in JSON, by the names of sampling.def: those of OpenAI's API
 * where it has the parameter, else llama.cpp's and vLLM's.
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

/* Sets the parameters that the object has; others keep the caller's values, and members that are no
 * parameters are left alone, as is one that is null. A whole number may be -1: none, as 0; so may
 * "seed", which then stays the caller's. *lists gets texts and biases, and *s points into it: it
 * must outlive *s. `tokenizer` may be NULL, with which texts are refused. XM_INVALID: a value has
 * another type or is out of its range; the sentence begins with the member's name, and *s has the
 * parameters before it. */
enum xm_status xm_sampling_from_json(yyjson_val *object,
                                     const struct xm_tokenizer *tokenizer,
                                     struct xm_sampling *s,
                                     struct xm_sampling_lists *lists,
                                     struct xm_error *err);
/* Whether a member of that name, n bytes, is a sampling parameter. */
bool xm_sampling_is_json_name(const char *name, size_t n);

#ifdef __cplusplus
}
#endif
#endif
