/* SPDX-License-Identifier: Apache-2.0
 *
 * A SentencePiece model's own normalization: a map from short texts to their replacements.
 *
 * The file holds it as base64 of
 *
 *     u32 bytes of the trie | trie: u32 units | replacements, each ended by a NUL
 *
 * where the trie is a double array: from a unit, byte c leads to unit (position ^ offset ^
 * c), if that one's label is c.
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

/* `base64` is not referred to afterwards. */
enum xm_status xm_charsmap_create(struct xm_slice base64, struct xm_charsmap **out,
                                  struct xm_error *err);
/* The bytes themselves, as GGUF files have them; they are copied. */
enum xm_status xm_charsmap_create_of(const uint8_t *bytes, size_t n,
                                     struct xm_charsmap **out, struct xm_error *err);
void xm_charsmap_free(struct xm_charsmap *map); /* NULL is allowed */

/* Appends the normalized `text` (well-formed UTF-8). Of base64: grapheme clusters of few bytes are
 * looked up as a whole, others character by character; else the longest text that the rest begins
 * with. */
void xm_charsmap_run(const struct xm_charsmap *map, struct xm_slice text,
                     struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
