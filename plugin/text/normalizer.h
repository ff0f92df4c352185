/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalizer: the stage of a tokenizer that rewrites text before the pre-tokenizer cuts it.
 *
 * tokenizer.json's "normalizer" object, which may nest sequences, becomes one flat list of steps.
 * Immutable after loading; many threads may run it.
 */
#ifndef XM_PLUGIN_TEXT_NORMALIZER_H
#define XM_PLUGIN_TEXT_NORMALIZER_H

#include <yyjson.h>

#include "plugin/text/bert_normalizer.h"
#include "plugin/text/charsmap.h"
#include "plugin/text/regex.h"
#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limit on the steps of a normalizer or pre-tokenizer, and on the depth of nested sequences. */
enum { XM_MAX_STEPS = 32 };

struct xm_normalizer_step {
    const struct xm_normalizer_type *type; /* row of the table in normalizer.c */
    struct xm_regex *regex;                /* owned; only of Replace */
    struct xm_charsmap *map;               /* owned; only of Precompiled */
    char *content;                         /* owned; only of Replace and Prepend */
    size_t content_bytes;
    bool strip_left, strip_right;   /* only of Strip */
    struct xm_bert_normalizer bert; /* only of BertNormalizer */
};

/* Zero-initialised, it leaves text unchanged. */
struct xm_normalizer {
    struct xm_normalizer_step steps[XM_MAX_STEPS];
    size_t n;
};

/* Reads the "normalizer" object; `value` may be NULL or JSON null. XM_UNSUPPORTED: an unknown type.
 * On failure `out` still has to be freed. */
enum xm_status xm_normalizer_load(yyjson_val *value, struct xm_normalizer *out,
                                  struct xm_error *err);
/* Appends a step that applies `map`. The normalizer takes ownership of the map, also on failure. */
enum xm_status xm_normalizer_add_map(struct xm_normalizer *normalizer,
                                     struct xm_charsmap *map, struct xm_error *err);
void xm_normalizer_free(struct xm_normalizer *normalizer);

/* Appends the normalized `text`. */
enum xm_status xm_normalizer_run(const struct xm_normalizer *normalizer,
                                 struct xm_slice text, struct xm_strbuf *out,
                                 struct xm_error *err);

/* Reads the member `key` of `object`: a pattern {"String": …} or {"Regex": …}, as normalizers,
 * pre-tokenizers and decoders have them. The caller frees *out. */
enum xm_status xm_pattern_load(yyjson_val *object, const char *key, struct xm_regex **out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
