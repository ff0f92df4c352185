/* SPDX-License-Identifier: Apache-2.0
 *
 * BERT's normalizer, in this order:
 *
 *     clean_text     drop control characters, U+0000 and U+FFFD; write white space as a space
 *     spaces_chinese put a space on each side of each Chinese character
 *     strip_accents  decompose (NFD) and drop non-spacing marks
 *     lowercase      the full lower-case mapping
 *
 * The categories of characters are those of the Unicode version that utf8proc implements. The
 * reference, the PyPI package tokenizers, uses Unicode 8: it keeps control characters and marks
 * that later versions added, and its BertPreTokenizer does not cut at punctuation that later
 * versions added.
 */
#ifndef XM_PLUGIN_TEXT_BERT_NORMALIZER_H
#define XM_PLUGIN_TEXT_BERT_NORMALIZER_H

#include <stdbool.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_bert_normalizer {
    bool clean_text, spaces_chinese, strip_accents, lowercase;
};

/* Appends the normalized `text` (well-formed UTF-8). */
enum xm_status xm_bert_normalize(const struct xm_bert_normalizer *options,
                                 struct xm_slice text, struct xm_strbuf *out,
                                 struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
