/* SPDX-License-Identifier: Apache-2.0
 *
 * A split program against the whole one, which one device has: every value that ranks exchange, and
 * the results. So a rank with a wrong part is found at the first exchange behind it.
 *
 *     error of a row = |rank - whole| / |whole|     (Euclidean, along the last axis)
 *
 * Other than step_checker.h's, errors accumulate: each side goes on from its own values.
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
};

/* `whole` has all results that ranks have, of the same names (xm_split_whole). Its request gets the
 * inputs, resets and truncations that the ranks' get, from an empty context on. */
enum xm_status xm_mesh_check_open(struct xm_mesh_check *c, struct xm_compiled *whole,
                                  xm_step_check_fn fn, void *ctx, struct xm_error *err);
void xm_mesh_check_close(struct xm_mesh_check *c);

/* Behind a run of the n ranks: runs the whole program and calls fn for each of its results that a
 * rank has, exchanges first, with the worst row of all ranks. */
enum xm_status xm_mesh_check_run(struct xm_mesh_check *c, struct xm_infer *const *rank,
                                 uint32_t n, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
