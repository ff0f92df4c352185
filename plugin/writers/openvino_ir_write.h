/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph of file operations as OpenVINO IR, version 11.
 *
 * Constants that are views into `bin` keep their place; others are appended. Symbolic dimensions
 * are written as -1. Operations that only passes make (weight, moe, …) cannot be written: error.
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
