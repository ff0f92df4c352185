/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a split program with the whole program, which runs on one device: every value that ranks
 * exchange, the results, and on request the result of every step. If a rank has a wrong part of a
 * weight, this shows at the first exchange after it; if all steps are compared, at the step that
 * reads it.
 *
 *     error of a row = |rank - whole| / |whole|     (Euclidean, along the last axis)
 *
 * Unlike in plugin/gpu/step_checker.h, errors accumulate: ranks and the whole program each continue
 * with their own values.
 */
#ifndef XM_PLUGIN_MESH_MESH_CHECK_H
#define XM_PLUGIN_MESH_MESH_CHECK_H

#include "plugin/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_mesh_check {
    /* owned: a request of the whole program; NULL: no check is open */
    struct xm_infer *whole;
    xm_step_check_fn fn;
    void *ctx;
    /* a run has failed: the ranks may be at another position than the whole program */
    bool is_apart;
};

/* Creates the request c->whole of `whole`, which must have all results that ranks have, with the
 * same names (xm_split_whole). The caller gives this request the inputs, resets and truncations
 * that it gives the ranks' requests, starting with empty contexts. */
enum xm_status xm_mesh_check_open(struct xm_mesh_check *c, struct xm_compiled *whole,
                                  xm_step_check_fn fn, void *ctx, struct xm_error *err);
void xm_mesh_check_close(struct xm_mesh_check *c);

/* Call after a run of the n ranks of this process. Runs the whole program and calls fn once for
 * each of its results, with the row that has the largest error over these ranks; the model's own
 * results come last. `compared` is false if none of these ranks has the result, or if it has
 * integers. XM_INVALID: a run before this one has failed (is_apart). */
enum xm_status xm_mesh_check_run(struct xm_mesh_check *c, struct xm_infer *const *rank,
                                 uint32_t n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
