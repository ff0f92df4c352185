/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as a picture, drawn by graphviz's program `dot`.
 */
#ifndef XM_PLUGIN_CLI_SVG_H
#define XM_PLUGIN_CLI_SVG_H

#include "transformations/graph/graph.h"

/* Writes `path`. XM_NOT_FOUND when there is no `dot` on this machine. */
enum xm_status xm_cli_write_svg(const struct xm_graph *g, const char *path,
                                struct xm_error *err);

#endif
