/* SPDX-License-Identifier: Apache-2.0
 *
 * The ordered table of passes and its runner.
 *
 * For each row: nothing if it is in the skip list; else run the pass and, if it changed the graph,
 * validate, dump and count; then check `ensures`. Environment: XM_SKIP=name,name skips rows (by
 * file name or public name), XM_STOP=name ends after that row, XM_DUMP=folder writes NN_<pass>.xmg
 * and .dot after each pass that changed the graph, XM_DEBUG=passes.
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
    /* Checks what must hold after the row, whether or not the pass ran; NULL: nothing. It only
     * reads the graph, but allocates messages in its arena. */
    enum xm_status (*ensures)(struct xm_graph *g, struct xm_error *err);
    const char *why_here; /* the reason for its place in the order */
};
const struct xm_pass *xm_passes(size_t *n); /* all rows, in order; static */
/* Finds a row by file name, by public name, or by the name of the pass in OpenVINO
 * (ConvertTiledMoeBlockToGatherMatmuls, …); NULL: none. */
const struct xm_pass *xm_pass_find(const char *name);

struct xm_pipeline_options {
    const char *skip, *stop, *dump; /* NULL: the values of XM_SKIP, XM_STOP, XM_DUMP */
    bool is_aside; /* ignores the environment: the graph is not the user's model        */
};

/* XM_INVALID: XM_SKIP or XM_STOP names no pass. */
enum xm_status xm_pipeline_check_environment(struct xm_error *err);

/* Runs all rows. `reports` (may be NULL) gets one entry for each row; *n_reports is its capacity on
 * entry, and the number of entries on return. `options` NULL: the environment decides. */
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
