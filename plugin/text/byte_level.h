/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes bytes as printable characters, the spelling of byte-level vocabularies such as GPT-2's.
 *
 * The vocabulary is a list of JSON strings, so each of the 256 bytes is written as a character: a
 * byte that is printable in Latin-1 as that character, the other 68 as U+0100, U+0101, … in the
 * order of their values (the space is U+0120).
 */
#ifndef XM_PLUGIN_TEXT_BYTE_LEVEL_H
#define XM_PLUGIN_TEXT_BYTE_LEVEL_H

#include "runtime/util/slice.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends one character for each byte of `bytes`. */
void xm_byte_level_encode(struct xm_slice bytes, struct xm_strbuf *out);

/* Appends the bytes that the characters of `text` stand for. If any of its characters stands for no
 * byte, appends `text` unchanged. */
void xm_byte_level_decode(struct xm_slice text, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
