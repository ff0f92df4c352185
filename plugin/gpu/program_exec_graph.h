/* SPDX-License-Identifier: Apache-2.0
 *
 * The execution graph of a program (plugin/exec_graph.h).
 */
#ifndef XM_PLUGIN_GPU_PROGRAM_EXEC_GRAPH_H
#define XM_PLUGIN_GPU_PROGRAM_EXEC_GRAPH_H

#include "plugin/exec_graph.h"
#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the execution graph of a program that has kept its graph. The kernels in it are those that
 * the program's device uses for one token and for a prompt. The caller frees *out with
 * xm_exec_graph_free, also on failure. */
enum xm_status xm_program_exec_graph(const struct xm_program *p,
                                     struct xm_exec_graph *out, struct xm_error *err);

/* Returns the name, a static string, of the element type that a step computes with: the type of the
 * first float activation that the step reads or, if it reads none, of its first result. */
const char *xm_step_precision(const struct xm_program *p, const struct xm_step *s);

#ifdef __cplusplus
}
#endif
#endif
