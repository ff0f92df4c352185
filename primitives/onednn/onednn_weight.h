/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight of ours as oneDNN reads it: the numbers where they lie, scales and zero points
 * turned once, [E][K / G][N] and zero points in 8 bits: 5 % of a 4-bit weight in groups of
 * 128, 19 % in groups of 32.
 */
#ifndef XM_PRIMITIVES_ONEDNN_ONEDNN_WEIGHT_H
#define XM_PRIMITIVES_ONEDNN_ONEDNN_WEIGHT_H

#include "primitives/onednn/onednn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_onednn_weight {
    struct xm_device_weight *weight;      /* referenced */
    struct xm_buffer *scale, *zero_point; /* ours; NULL where absent */
};

/* NULL: oneDNN's GPU engine on this device could read this weight; else a static sentence.
 * Pure. */
const char *xm_onednn_weight_refuses(const struct xm_device_info *device,
                                     const struct xm_weight *w);
/* Turns on the device and waits. On failure nothing is to be undone. */
enum xm_status xm_onednn_weight_init(struct xm_onednn_weight *o, struct xm_engine *engine,
                                     struct xm_device_weight *weight,
                                     struct xm_error *err);
void xm_onednn_weight_fini(struct xm_onednn_weight *o); /* a zeroed one is allowed */

/* The parts of a problem that follow from the weight: n, k, w, group, scale, zero_point. */
struct xm_onednn_problem xm_onednn_weight_problem(const struct xm_weight *w);
/* The spans of one expert. */
void xm_onednn_weight_spans(const struct xm_onednn_weight *o, uint64_t expert,
                            struct xm_onednn_spans *spans);

#ifdef __cplusplus
}
#endif
#endif
