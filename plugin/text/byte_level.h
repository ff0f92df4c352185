/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as printable characters.
 *
 * Byte-level vocabularies are JSON strings, so each of the 256 bytes has a character of
 * its own: the bytes that are printable in Latin-1 stand for themselves, the other 68 are
 * U+0100, U+0101, … in order of their value (a space is U+0120).
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

/* Appends the bytes that the characters of `text` stand for. Text with any character that
 * stands for none is taken as it is, whole. */
void xm_byte_level_decode(struct xm_slice text, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
