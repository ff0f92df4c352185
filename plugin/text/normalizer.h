/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalizer: what happens to text before it is cut.
 *
 * A file's component, nested sequences and all, becomes one flat list of steps.
 */
#ifndef XM_PLUGIN_TEXT_NORMALIZER_H
#define XM_PLUGIN_TEXT_NORMALIZER_H

#include <yyjson.h>

#include "plugin/text/charsmap.h"
#include "plugin/text/regex.h"
#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_MAX_STEPS = 32, XM_MAX_NESTING = 8 }; /* of every component */

struct xm_normalizer_step {
    const struct xm_normalizer_type *type; /* row of the table in normalizer.c  */
    struct xm_regex *regex;                /* owned; Replace                    */
    struct xm_charsmap *map;               /* owned; Precompiled                */
    char *content;                         /* owned; Replace, Prepend           */
    size_t content_bytes;
    bool strip_left, strip_right;
};

/* Zero-initialised: changes nothing. */
struct xm_normalizer {
    struct xm_normalizer_step steps[XM_MAX_STEPS];
    size_t n;
};

/* `value` may be NULL or null. On failure `out` still has to be freed. */
enum xm_status xm_normalizer_load(yyjson_val *value, struct xm_normalizer *out,
                                  struct xm_error *err);
/* A map of characters as one more step, which takes `map` over, also on failure. */
enum xm_status xm_normalizer_add_map(struct xm_normalizer *normalizer,
                                     struct xm_charsmap *map, struct xm_error *err);
void xm_normalizer_free(struct xm_normalizer *normalizer);

/* Appends the normalized `text`. */
enum xm_status xm_normalizer_run(const struct xm_normalizer *normalizer,
                                 struct xm_slice text, struct xm_strbuf *out,
                                 struct xm_error *err);

/* Reads {"String": …} or {"Regex": …} at `key`: a pattern of any component. */
enum xm_status xm_pattern_load(yyjson_val *object, const char *key, struct xm_regex **out,
                               struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
