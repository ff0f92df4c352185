/* SPDX-License-Identifier: Apache-2.0
 *
 * XML by Expat with our allocator, whose failures are reported as sentences. */
#ifndef XM_RUNTIME_UTIL_XML_H
#define XM_RUNTIME_UTIL_XML_H

#include <expat.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a parser; free it with XML_ParserFree(). Both handlers, and those set later, get
 * `ctx`. */
enum xm_status xm_xml_parser(void *ctx, XML_StartElementHandler on_open,
                             XML_EndElementHandler on_close, XML_Parser *out,
                             struct xm_error *err);

/* The line that the parser is at, from 1. */
unsigned long xm_xml_line(XML_Parser p);

/* Parses a complete document of n bytes. A handler may end the parse with XML_StopParser: then
 * xm_xml_parse returns the status in *err, which is XM_OK if the handler has found what it searches
 * for. */
enum xm_status xm_xml_parse(XML_Parser p, const char *text, size_t n,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
