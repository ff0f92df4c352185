/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters of UTF-8 text.
 *
 * Inside the tokenizer all text is well-formed UTF-8: xm_utf8_repair() runs once on its input and
 * replaces every maximal ill-formed part by U+FFFD (The Unicode Standard, section 3.9), as Python's
 * decoder does for callers of the reference, Hugging Face tokenizers.
 */
#ifndef XM_RUNTIME_UTIL_UTF8_H
#define XM_RUNTIME_UTIL_UTF8_H

#include "runtime/util/slice.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_UTF8_SHOWN = 64,   /* bytes of a text in an error sentence, with the NUL */
    XM_UTF8_BAD = -1,     /* the bytes are ill-formed, whatever follows them   */
    XM_UTF8_PARTIAL = -2, /* the text ends inside a character                  */
    XM_UTF8_REPLACEMENT = 0xfffd
};

/* Decodes the first character of `s` (s.n > 0). Returns its length in bytes and sets *code to its
 * code point. If the bytes are ill-formed, *code is XM_UTF8_BAD or XM_UTF8_PARTIAL, and the length
 * is that of the ill-formed part. */
size_t xm_utf8_next(struct xm_slice s, int32_t *code);

/* Appends a code point as 1 to 4 bytes. */
void xm_utf8_add(struct xm_strbuf *out, int32_t code);
bool xm_utf8_is_valid(struct xm_slice s);

/* Appends `s` with every ill-formed part replaced by U+FFFD. */
void xm_utf8_repair(struct xm_slice s, struct xm_strbuf *out);

/* Writes `s` to `out` in a form that is safe in an error message and on a terminal: U+FFFD for
 * ill-formed parts, '?' for control characters. A text that does not fit into out_bytes > 0 with
 * its NUL is cut between two characters. */
void xm_utf8_show(struct xm_slice s, char *out, size_t out_bytes);
/* As xm_utf8_show, but returns a struct of at most XM_UTF8_SHOWN - 1 bytes, for an argument of a
 * format. */
struct xm_shown {
    char text[XM_UTF8_SHOWN];
};
struct xm_shown xm_utf8_shown(struct xm_slice s);

bool xm_utf8_is_space(int32_t code); /* Unicode White_Space                         */
bool xm_utf8_is_word(int32_t code);  /* letters, marks, digits, connectors: \w      */
bool xm_utf8_is_mark(int32_t code);  /* combines with the character before: M       */
int32_t xm_utf8_lower(int32_t code); /* the simple lower-case mapping               */

/* Return `s` without the white space at its beginning, and at its end. */
struct xm_slice xm_utf8_trim_left(struct xm_slice s);
struct xm_slice xm_utf8_trim_right(struct xm_slice s);

#ifdef __cplusplus
}
#endif
#endif
