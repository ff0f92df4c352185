/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight of ours as oneDNN reads it: the numbers where they lie, scales and zero points as
 * [E][K / G][N]. They are turned once, before any kernel is built for the weight, and ours read
 * them in that order, too: there is no second copy.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_WEIGHT_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_WEIGHT_H

#include "primitives/onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: oneDNN has more than reference code for quantised weights on this device; else a static
 * sentence. Pure. */
const char *xm_onednn_refuses_quantised(const struct xm_device_info *device);
/* NULL: oneDNN's GPU engine on this device could read this weight; else a static sentence.
 * Pure. */
const char *xm_onednn_weight_refuses(const struct xm_device_info *device,
                                     const struct xm_weight *w);
/* Whether only the order of scales, or the width of a zero point for all, keeps oneDNN from
 * this weight. Pure. */
bool xm_onednn_weight_can_turn(const struct xm_device_info *device,
                               const struct xm_weight *w);
/* Puts such a weight's scales and zero points as oneDNN wants them, on the device; waits.
 * weight->host says so afterwards; on failure the weight is as it was. */
enum xm_status xm_onednn_weight_turn(struct xm_engine *engine,
                                     struct xm_device_weight *weight,
                                     struct xm_error *err);

/* The parts of a problem that follow from the weight: n, k, w and what quantises it. */
struct xm_onednn_problem xm_onednn_weight_problem(const struct xm_weight *w);
/* The spans of one expert. */
void xm_onednn_weight_spans(const struct xm_device_weight *w, uint64_t expert,
                            struct xm_onednn_spans *spans);

#ifdef __cplusplus
}
#endif
#endif
