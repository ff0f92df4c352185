/* SPDX-License-Identifier: Apache-2.0
 *
 * The post-processor: the special tokens put around a text, such as a begin-of-text token.
 *
 * Every type of "post_processor" in tokenizer.json, applied to a single text, amounts to two lists
 * of token ids: those before the text and those behind it.
 */
#ifndef XM_PLUGIN_TEXT_POST_PROCESSOR_H
#define XM_PLUGIN_TEXT_POST_PROCESSOR_H

#include <yyjson.h>

#include "plugin/text/token_list.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialised, it adds nothing. */
struct xm_post_processor {
    struct xm_token_list before, after;
};

/* Reads the "post_processor" object; `value` may be NULL or JSON null. On failure `out` still has
 * to be freed. */
enum xm_status xm_post_processor_load(yyjson_val *value, struct xm_post_processor *out,
                                      struct xm_error *err);
void xm_post_processor_free(struct xm_post_processor *post);

#ifdef __cplusplus
}
#endif
#endif
