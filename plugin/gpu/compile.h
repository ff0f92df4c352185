/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling a graph for a device: passes, configuration rules, then lowering.
 */
#ifndef XM_PLUGIN_GPU_COMPILE_H
#define XM_PLUGIN_GPU_COMPILE_H

#include "plugin/compile_options.h"
#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rewrites graph `g` for the engine's device and lowers it to a program. The call owns `g` from now
 * on, also on failure. */
enum xm_status xm_program_create(struct xm_engine *engine, const struct xm_config *config,
                                 struct xm_graph *g,
                                 const struct xm_compile_options *options,
                                 struct xm_program **out, struct xm_error *err);
/* A graph that another process has rewritten for an equal device, with the reports and notes of the
 * passes, which xm_program_import copies. */
struct xm_rewritten {
    struct xm_graph *graph; /* xm_program_import owns it from then on, also on failure */
    const struct xm_pass_report *reports;
    size_t n_reports;
    const char *notes;
};
/* As xm_program_create without passes: lowers the rewritten graph. */
enum xm_status xm_program_import(struct xm_engine *engine, const struct xm_config *config,
                                 const struct xm_rewritten *rewritten,
                                 struct xm_program **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
