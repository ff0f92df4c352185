/* SPDX-License-Identifier: Apache-2.0
 *
 * The four Unicode normalization forms (UAX #15), and conversion to lower case.
 */
#ifndef XM_PLUGIN_TEXT_UNICODE_FORM_H
#define XM_PLUGIN_TEXT_UNICODE_FORM_H

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_unicode_form { XM_NFC, XM_NFD, XM_NFKC, XM_NFKD };

/* Appends `text` (well-formed UTF-8) in the given form. */
enum xm_status xm_unicode_normalize(enum xm_unicode_form form, struct xm_slice text,
                                    struct xm_strbuf *out, struct xm_error *err);

/* Appends the full lower-case mapping of a code point. */
void xm_unicode_add_lower(int32_t code, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
