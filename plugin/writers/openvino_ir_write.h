/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a graph as OpenVINO IR, version 11.
 *
 * Constants that are views into `bin` stay where they are; others are appended to it. Symbolic
 * dimensions are written as -1. A graph with operations that only passes create (weight, moe, …)
 * cannot be written and is an error.
 */
#ifndef XM_PLUGIN_WRITERS_OPENVINO_IR_WRITE_H
#define XM_PLUGIN_WRITERS_OPENVINO_IR_WRITE_H

#include "plugin/writers/bin_file.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_status xm_openvino_ir_write(const struct xm_graph *g,
                                    const struct xm_new_file *xml,
                                    struct xm_bin_file *bin, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
