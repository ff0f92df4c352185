/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures in graphviz's language, drawn by its program `dot`.
 */
#ifndef XM_PLUGIN_CLI_SVG_H
#define XM_PLUGIN_CLI_SVG_H

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

/* Writes `path`. XM_NOT_FOUND when there is no `dot` on this machine. */
enum xm_status xm_cli_write_svg(const struct xm_strbuf *dot, const char *path,
                                struct xm_error *err);

#endif
