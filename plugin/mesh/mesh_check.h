/* SPDX-License-Identifier: Apache-2.0
 *
 * A split program against the whole one, which one device has: every value that ranks exchange,
 * and the results; where it is asked for, what every step makes. A rank with a wrong part of a
 * weight is found at the first exchange after it, or at the step that reads it.
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
    struct xm_infer
        *whole; /* owned: a request of the whole program; NULL: nobody checks */
    xm_step_check_fn fn;
    void *ctx;
    bool
        is_apart; /* a run has failed: the ranks may be at another position than the whole */
};

/* `whole` has all results that ranks have, of the same names (xm_split_whole). Its request gets the
 * inputs, resets and truncations that the ranks' get, from an empty context on. */
enum xm_status xm_mesh_check_open(struct xm_mesh_check *c, struct xm_compiled *whole,
                                  xm_step_check_fn fn, void *ctx, struct xm_error *err);
void xm_mesh_check_close(struct xm_mesh_check *c);

/* After a run of the n ranks: runs the whole program and calls fn once for each of its results, the
 * model's own last, with the row of the largest error over the ranks of this process. `compared` is
 * false where no rank here has the result, or it is an integer. */
enum xm_status xm_mesh_check_run(struct xm_mesh_check *c, struct xm_infer *const *rank,
                                 uint32_t n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
