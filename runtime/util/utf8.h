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

/* The first character of `s` (s.n > 0): its length in bytes, and in *code its code point,
 * or one of the values above; the length is then that of the ill-formed part. */
size_t xm_utf8_next(struct xm_slice s, int32_t *code);

/* Appends the 1 to 4 bytes of a code point. */
void xm_utf8_add(struct xm_strbuf *out, int32_t code);
bool xm_utf8_is_valid(struct xm_slice s);

/* Appends `s` with every ill-formed part replaced by U+FFFD. */
void xm_utf8_repair(struct xm_slice s, struct xm_strbuf *out);

/* Writes `s` into `out` in a form that is safe in an error sentence and on a terminal: U+FFFD for
 * ill-formed parts, '?' for control characters. A text that does not fit in out_bytes > 0, with its
 * NUL, is cut at the end of a character. */
void xm_utf8_show(struct xm_slice s, char *out, size_t out_bytes);
struct xm_shown {
    char text[XM_UTF8_SHOWN];
};
struct xm_shown xm_utf8_shown(struct xm_slice s);

bool xm_utf8_is_space(int32_t code); /* Unicode White_Space                         */
bool xm_utf8_is_word(int32_t code);  /* letters, marks, digits, connectors: \w      */
bool xm_utf8_is_mark(int32_t code);  /* combines with the character before: M       */
int32_t xm_utf8_lower(int32_t code); /* the simple lower-case mapping               */

/* `s` without the white space at its beginning / at its end. */
struct xm_slice xm_utf8_trim_left(struct xm_slice s);
struct xm_slice xm_utf8_trim_right(struct xm_slice s);

#ifdef __cplusplus
}
#endif
#endif
