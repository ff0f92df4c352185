/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-tokenizer: cuts text into pieces; no token crosses the border of two pieces.
 *
 * Every type of "pre_tokenizer" in tokenizer.json is composed of four kinds of steps:
 *
 *     CUT      cuts at the matches of a pattern (see split.h)
 *     REPLACE  replaces the matches of a pattern by a text
 *     PREFIX   puts a text before each piece that does not begin with it
 *     BYTES    writes each byte as a printable character (see byte_level.h)
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

enum { XM_PREFIX_BYTES = 8 }; /* room for one UTF-8 character */

struct xm_pre_step {
    enum xm_pre_step_kind kind;
    struct xm_regex *regex;          /* owned; only of CUT and REPLACE */
    enum xm_split_behavior behavior; /* only of CUT: where the matches go */
    /* only of CUT: the text between matches is the delimiter */
    bool invert;
    char text[XM_PREFIX_BYTES]; /* only of REPLACE and PREFIX */
    size_t text_bytes;
    /* only of PREFIX: put it only before the first piece of the caller's text */
    bool first_only;
};

/* Zero-initialised, it does not cut: the text is one piece. */
struct xm_pre_tokenizer {
    struct xm_pre_step steps[XM_MAX_STEPS];
    size_t n;
};

/* Reads the "pre_tokenizer" object; `value` may be NULL or JSON null. On failure `out` still has to
 * be freed. */
enum xm_status xm_pre_tokenizer_load(yyjson_val *value, struct xm_pre_tokenizer *out,
                                     struct xm_error *err);
/* The xm_pre_tokenizer_add_… functions append steps, for file formats without a tokenizer.json. On
 * failure `pre` still has to be freed. */

/* Appends a CUT at the matches of `pattern`; both the matches and the text between them become
 * pieces. */
enum xm_status xm_pre_tokenizer_add_cut(struct xm_pre_tokenizer *pre, const char *pattern,
                                        struct xm_error *err);
/* Appends a CUT at white space, which is dropped. */
enum xm_status xm_pre_tokenizer_add_white_space(struct xm_pre_tokenizer *pre,
                                                struct xm_error *err);
/* Appends a CUT at white space, which is dropped, and one at each punctuation mark, which becomes a
 * piece. */
enum xm_status xm_pre_tokenizer_add_bert(struct xm_pre_tokenizer *pre,
                                         struct xm_error *err);
extern const char xm_byte_level_pattern[]; /* the pattern of ByteLevel's CUT (GPT-2's) */
/* Appends a BYTES step. */
enum xm_status xm_pre_tokenizer_add_bytes(struct xm_pre_tokenizer *pre,
                                          struct xm_error *err);
void xm_pre_tokenizer_free(struct xm_pre_tokenizer *pre);

/* Runs all steps over `pieces`, in place; `scratch` is overwritten. Many threads may run the same
 * pre-tokenizer, each with lists of its own. */
enum xm_status xm_pre_tokenizer_run(const struct xm_pre_tokenizer *pre,
                                    struct xm_pieces *pieces, struct xm_pieces *scratch,
                                    struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
