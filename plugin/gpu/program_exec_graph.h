/* SPDX-License-Identifier: Apache-2.0
 *
 * The execution graph of a program (plugin/exec_graph.h).
 */
#ifndef XM_PLUGIN_GPU_PROGRAM_EXEC_GRAPH_H
#define XM_PLUGIN_GPU_PROGRAM_EXEC_GRAPH_H

#include "plugin/exec_graph.h"
#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels are those that a device like the program's takes for one token and for many. The program
 * has kept its graph. *out is for xm_exec_graph_free, also on failure. */
enum xm_status xm_program_exec_graph(const struct xm_program *p,
                                     struct xm_exec_graph *out, struct xm_error *err);

/* What a step computes in: the type of the first activation that it reads, or where it reads
 * none of floats, of its first result. Static. */
const char *xm_step_precision(const struct xm_program *p, const struct xm_step *s);

#ifdef __cplusplus
}
#endif
#endif
