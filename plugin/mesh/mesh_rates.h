/* SPDX-License-Identifier: Apache-2.0
 *
 * What has been measured on the devices of a mesh, and kept (runtime/kept.h): the rates that decide
 * what is worth splitting, and forecasts of exchanges.
 */
#ifndef XM_PLUGIN_MESH_MESH_RATES_H
#define XM_PLUGIN_MESH_MESH_RATES_H

#include "runtime/device_info.h"
#include "transformations/split/split.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds of a message, of which an exchange has log2(ranks), rounded up (plugin/forecast.h),
 * between `ranks` devices of one process, the first of which is `first`. `cache_dir`: CACHE_DIR.
 * False: not known. */
bool xm_mesh_latency_load(const char *cache_dir, const struct xm_device_info *first,
                          uint32_t ranks, double *latency_s);
void xm_mesh_latency_store(const char *cache_dir, const struct xm_device_info *first,
                           uint32_t ranks, double latency_s);

/* What part of the rates that a device has alone it has beside others that read the same memory:
 * `ranks` devices, the first of which is `first`, with most weights of a format. */
struct xm_mesh_together {
    double read, multiply; /* > 0 */
};
bool xm_mesh_together_load(const char *cache_dir, const struct xm_device_info *first,
                           uint32_t ranks, const char *weight_format,
                           struct xm_mesh_together *out);
void xm_mesh_together_store(const char *cache_dir, const struct xm_device_info *first,
                            uint32_t ranks, const char *weight_format,
                            const struct xm_mesh_together *t);

/* Replaces the wish's rate of reading by that of its devices, info[wish->ranks]: of the slowest,
 * its streaming rate as it was measured, else its card's, unless one is not known. The latency
 * stays the usual one: a measured one has the ranks' waiting for each other in it, and a split that
 * does not pay for a token may well pay for a prompt, which nobody weighs. */
void xm_mesh_take_rates(const char *cache_dir, const struct xm_device_info *const *info,
                        struct xm_split_wish *wish);

#ifdef __cplusplus
}
#endif
#endif
