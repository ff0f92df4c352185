/* SPDX-License-Identifier: Apache-2.0
 *
 * The ordered table of passes and its runner.
 *
 * For each row: skip list -> run -> on progress validate, dump, count -> `ensures`. Environment:
 * XM_SKIP=name,name (by pass or public name) leaves rows out, XM_STOP=name ends behind that row,
 * XM_DUMP=folder writes NN_<pass>.xmg and .dot after each pass with progress, XM_DEBUG=passes.
 */
#ifndef XM_TRANSFORMATIONS_PIPELINE_H
#define XM_TRANSFORMATIONS_PIPELINE_H

#include "transformations/pass_report.h"
#include "transformations/rewrite/rewrite.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_pass {
    const char *name;        /* "fuse_rms_norm": file name */
    const char *public_name; /* "FuseRMSNorm": in messages, XM_SKIP, profiling */
    /* Returns whether the graph changed; failures in graph->err. */
    bool (*run)(struct xm_graph *g, const struct xm_caps *caps);
    /* Checks what must hold after the row, whether or not the pass ran; NULL: nothing. It reads the
     * graph, and writes sentences to its arena. */
    enum xm_status (*ensures)(struct xm_graph *g, struct xm_error *err);
    const char *why_here; /* the reason for its place */
};
const struct xm_pass *xm_passes(size_t *n); /* all rows, in order; static */
/* The row with this file name, public name, or name of the pass in OpenVINO
 * (ConvertTiledMoeBlockToGatherMatmuls, …); NULL: none. */
const struct xm_pass *xm_pass_find(const char *name);

struct xm_pipeline_options {
    const char *skip, *stop, *dump; /* NULL: XM_SKIP, XM_STOP, XM_DUMP … */
    bool is_aside; /* the environment does not apply: the graph is not the user's model */
};

/* Runs all rows. `reports` (may be NULL) gets one entry a row, *n_reports of them at most. */
enum xm_status xm_pipeline_run(struct xm_graph *g, const struct xm_caps *caps,
                               const struct xm_pipeline_options *options,
                               struct xm_pass_report *reports, size_t *n_reports,
                               struct xm_error *err);

/* The passes, each a function or a table of rules in transformations/passes/<name>.c. */
#define PASS(name, public_name, ensures, why_here)                                       \
    bool xm_pass_##name(struct xm_graph *g, const struct xm_caps *caps);
#define RULES(name, public_name, why_here)                                               \
    PASS(name, public_name, NULL, why_here)                                              \
    extern const struct xm_rule xm_rules_##name[];
#include "transformations/passes.def"

#ifdef __cplusplus
}
#endif
#endif
