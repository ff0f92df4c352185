/* SPDX-License-Identifier: Apache-2.0
 *
 * Stop strings in text that arrives in parts.
 *
 *     stop "###"    parts "abc#" "#" "x" "y###z"    out "abc" "" "##x" "y", stopped
 *
 * What may be the beginning of a stop string is held back until that is decided. The stop
 * string that is complete first ends the text, the longest of those that end at the same
 * byte; neither it nor what follows comes out. The result does not depend on where the
 * text was cut.
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

/* Copies the strings; an empty one is an error. Without any nothing is ever held back. */
enum xm_status xm_stop_strings_create(const struct xm_slice *strings, size_t n,
                                      struct xm_stop_strings **out, struct xm_error *err);
void xm_stop_strings_free(struct xm_stop_strings *stops); /* NULL is allowed */
/* What is held back belongs to both, which then go their own ways. NULL: no memory. */
struct xm_stop_strings *xm_stop_strings_copy(const struct xm_stop_strings *stops);
/* From now on the one that is found comes out, too. */
void xm_stop_strings_keep_found(struct xm_stop_strings *stops);
/* From now on parts are tokens, and blanks and line breaks before the one that is found do not come
 * out where its first token begins with them. */
void xm_stop_strings_drop_blanks(struct xm_stop_strings *stops);

/* Appends the text that is certain now. *stopped: a stop string was found, now or before;
 * the rest of the text is ignored. */
enum xm_status xm_stop_strings_push(struct xm_stop_strings *stops, const char *text,
                                    size_t n, struct xm_strbuf *out, bool *stopped,
                                    struct xm_error *err);

/* The text has ended: appends what is held back, and begins anew. */
enum xm_status xm_stop_strings_flush(struct xm_stop_strings *stops, struct xm_strbuf *out,
                                     struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
