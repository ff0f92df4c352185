/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes an execution graph as XML, in the form that programs know from OpenVINO: a layer for each
 * node; the attributes of its <data> say what runs it.
 */
#ifndef XM_PLUGIN_WRITERS_EXEC_GRAPH_WRITE_H
#define XM_PLUGIN_WRITERS_EXEC_GRAPH_WRITE_H

#include "plugin/exec_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the execution graph of the model `name` to xml_path. */
enum xm_status xm_exec_graph_write(const struct xm_exec_graph *g, const char *name,
                                   const char *xml_path, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
