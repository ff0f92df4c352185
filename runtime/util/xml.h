/* SPDX-License-Identifier: Apache-2.0
 *
 * Expat with our allocator, and its failures as sentences.
 */
#ifndef XM_RUNTIME_UTIL_XML_H
#define XM_RUNTIME_UTIL_XML_H

#include <expat.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Free with XML_ParserFree(). Both handlers, and those set later, get `ctx`. */
enum xm_status xm_xml_parser(void *ctx, XML_StartElementHandler on_open,
                             XML_EndElementHandler on_close, XML_Parser *out,
                             struct xm_error *err);

/* The whole text. A handler that stops the parser puts the reason in *err, whose status is
 * returned; XM_OK there: it has what it was looking for. */
enum xm_status xm_xml_parse(XML_Parser p, const char *text, size_t n,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
