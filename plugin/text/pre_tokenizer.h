/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-tokenizer: cuts text into pieces that no merge crosses.
 *
 * Every kind of file component is made of four simple steps:
 *
 *     CUT      at the matches of a pattern (see split.h)
 *     REPLACE  the matches of a pattern by a text
 *     PREFIX   a text put before a piece that does not begin with it
 *     BYTES    bytes written as printable characters (see byte_level.h)
 *
 *     ByteLevel = PREFIX " ", CUT, BYTES        Metaspace = REPLACE " ", PREFIX "▁", CUT
 */
#ifndef XM_PLUGIN_TEXT_PRE_TOKENIZER_H
#define XM_PLUGIN_TEXT_PRE_TOKENIZER_H

#include <yyjson.h>

#include "plugin/text/normalizer.h"
#include "plugin/text/pieces.h"
#include "plugin/text/regex.h"
#include "plugin/text/split.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_pre_step_kind { XM_PRE_CUT, XM_PRE_REPLACE, XM_PRE_PREFIX, XM_PRE_BYTES };

enum { XM_PREFIX_BYTES = 8 }; /* room for one character */

struct xm_pre_step {
    enum xm_pre_step_kind kind;
    struct xm_regex *regex; /* owned; CUT, REPLACE */
    enum xm_split_behavior behavior;
    bool invert;                /* CUT: what does not match is the delimiter      */
    char text[XM_PREFIX_BYTES]; /* REPLACE, PREFIX                                */
    size_t text_bytes;
    bool first_only; /* PREFIX: only where the caller's text begins    */
};

/* Zero-initialised: one piece, the whole text. */
struct xm_pre_tokenizer {
    struct xm_pre_step steps[XM_MAX_STEPS];
    size_t n;
};

/* `value` may be NULL or null. On failure `out` still has to be freed. */
enum xm_status xm_pre_tokenizer_load(yyjson_val *value, struct xm_pre_tokenizer *out,
                                     struct xm_error *err);
/* One step more: a cut at a pattern's matches, which are pieces as what is between them is; bytes
 * written as characters. */
enum xm_status xm_pre_tokenizer_add_cut(struct xm_pre_tokenizer *pre, const char *pattern,
                                        struct xm_error *err);
/* A cut at white space, which is left out. */
enum xm_status xm_pre_tokenizer_add_white_space(struct xm_pre_tokenizer *pre,
                                                struct xm_error *err);
extern const char xm_byte_level_pattern[]; /* what ByteLevel cuts with */
enum xm_status xm_pre_tokenizer_add_bytes(struct xm_pre_tokenizer *pre,
                                          struct xm_error *err);
void xm_pre_tokenizer_free(struct xm_pre_tokenizer *pre);

/* Cuts the pieces of `pieces` further; `scratch` is overwritten. */
enum xm_status xm_pre_tokenizer_run(const struct xm_pre_tokenizer *pre,
                                    struct xm_pieces *pieces, struct xm_pieces *scratch,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
