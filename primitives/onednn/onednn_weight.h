/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight of ours as oneDNN reads it: the numbers in place, scales and zero points as [E][K /
 * G][N]. Scales and zero points are transposed into that order once, before any kernel is built for
 * the weight. Our kernels read that order, too, so there is no second copy.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_WEIGHT_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_WEIGHT_H

#include "primitives/onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns NULL if oneDNN has optimised code for quantised weights on this device, else the reason,
 * a static string. Pure. */
const char *xm_onednn_refuses_quantised(const struct xm_device_info *device);
/* Returns NULL if oneDNN's GPU engine on this device could read this weight, else the reason, a
 * static string. Pure. */
const char *xm_onednn_weight_refuses(const struct xm_device_info *device,
                                     const struct xm_weight *w);
/* Returns whether xm_onednn_weight_turn would make this weight readable for oneDNN: only the order
 * of its scales, or the 4 bits of its one zero point, are wrong. Pure. */
bool xm_onednn_weight_can_turn(const struct xm_device_info *device,
                               const struct xm_weight *w);
/* Transposes such a weight's scales and zero points on the device into oneDNN's order, and widens a
 * single zero point to 8 bits; waits. Updates weight->host. After a failure the weight is
 * unchanged. */
enum xm_status xm_onednn_weight_turn(struct xm_engine *engine,
                                     struct xm_device_weight *weight,
                                     struct xm_error *err);

/* Returns a problem with the members that follow from the weight set: n, k, w, group, scale and
 * zero point. */
struct xm_onednn_problem xm_onednn_weight_problem(const struct xm_weight *w);
/* Sets the spans of W, SCALE and ZERO_POINT to those of one expert. */
void xm_onednn_weight_spans(const struct xm_device_weight *w, uint64_t expert,
                            struct xm_onednn_spans *spans);

#ifdef __cplusplus
}
#endif
#endif
