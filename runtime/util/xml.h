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

/* The line that is being parsed, from 1. */
unsigned long xm_xml_line(XML_Parser p);

/* Parses a complete document of n bytes. A handler may end the parse with XML_StopParser: then the
 * status in *err is returned, XM_OK if the handler has found what it searches for. */
enum xm_status xm_xml_parse(XML_Parser p, const char *text, size_t n,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
