/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds stop strings in a text that arrives in parts, and ends the text before the first one.
 *
 *     stop "###"    parts "abc#" "#" "x" "y###z"    out "abc" "" "##x" "y", stopped
 *
 * Text that may be the beginning of a stop string is held back until that is decided. The stop
 * string that is complete first ends the text; of several that end at the same byte, the longest
 * wins. The stop string and the text behind it are not returned. The result does not depend on how
 * the text was divided into parts. An object belongs to one text and one thread at a time.
 */
#ifndef XM_PLUGIN_TEXT_STOP_STRINGS_H
#define XM_PLUGIN_TEXT_STOP_STRINGS_H

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_stop_strings;

/* Copies the `n` strings. XM_INVALID: one is empty. With n = 0 no text is ever held back. */
enum xm_status xm_stop_strings_create(const struct xm_slice *strings, size_t n,
                                      struct xm_stop_strings **out, struct xm_error *err);
void xm_stop_strings_free(struct xm_stop_strings *stops); /* NULL is allowed */
/* Returns an independent copy, including the held-back text. NULL: no memory. */
struct xm_stop_strings *xm_stop_strings_copy(const struct xm_stop_strings *stops);
/* From now on the stop string that is found is returned as part of the text. */
void xm_stop_strings_keep_found(struct xm_stop_strings *stops);
/* From now on each pushed part must be the text of one token. If a stop string begins inside a
 * token behind nothing but spaces and line breaks, these are dropped, too. */
void xm_stop_strings_drop_blanks(struct xm_stop_strings *stops);

/* Takes the next n bytes and appends the text that can no longer belong to a stop string. *stopped:
 * a stop string was found, in this call or before; further text is ignored. */
enum xm_status xm_stop_strings_push(struct xm_stop_strings *stops, const char *text,
                                    size_t n, struct xm_strbuf *out, bool *stopped,
                                    struct xm_error *err);

/* Returns the number, from 1, of the stop string that was found; 0: none. Valid until the text is
 * ended. */
size_t xm_stop_strings_found(const struct xm_stop_strings *stops);

/* Ends the text: appends the text held back and resets the object for the next text. */
enum xm_status xm_stop_strings_flush(struct xm_stop_strings *stops, struct xm_strbuf *out,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
