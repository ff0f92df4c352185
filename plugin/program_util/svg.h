/* SPDX-License-Identifier: Apache-2.0
 *
 * Renders a graph in graphviz's language with its program `dot`.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_SVG_H
#define XM_PLUGIN_PROGRAM_UTIL_SVG_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

/* Writes the SVG file `path` from the text `dot`. XM_NOT_FOUND: the program `dot` is not
 * installed. */
enum xm_status xm_cli_write_svg(const struct xm_strbuf *dot, const char *path,
                                struct xm_error *err);

#endif
