/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece's "precompiled charsmap": a normalizer that maps short texts to replacements.
 *
 * tokenizer.json holds it in base64, GGUF files as bytes:
 *
 *     u32 bytes of the trie | trie: u32 units | replacements, each ended by a NUL
 *
 * where the trie is a double array: from the unit at `position`, byte c leads to the unit at
 * (position ^ offset ^ c), if that unit's label is c.
 */
#ifndef XM_PLUGIN_TEXT_CHARSMAP_H
#define XM_PLUGIN_TEXT_CHARSMAP_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_charsmap;

/* Creates a map from tokenizer.json's base64 text, which is not kept. XM_INVALID: the map is
 * malformed. */
enum xm_status xm_charsmap_create(struct xm_slice base64, struct xm_charsmap **out,
                                  struct xm_error *err);
/* Creates a map from its n bytes, as GGUF files have them; they are copied. */
enum xm_status xm_charsmap_create_of(const uint8_t *bytes, size_t n,
                                     struct xm_charsmap **out, struct xm_error *err);
void xm_charsmap_free(struct xm_charsmap *map); /* NULL is allowed */

/* Appends the normalized `text` (well-formed UTF-8). Maps of the two sources work differently, as
 * the programs that define the file formats do: a map from tokenizer.json looks up grapheme
 * clusters of at most 5 bytes as a whole and longer ones character by character; a map from GGUF
 * replaces the longest key with which the remaining text begins. */
void xm_charsmap_run(const struct xm_charsmap *map, struct xm_slice text,
                     struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
