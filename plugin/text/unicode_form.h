/* SPDX-License-Identifier: Apache-2.0
 *
 * The four Unicode normalization forms (UAX #15).
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

#ifdef __cplusplus
}
#endif
#endif
