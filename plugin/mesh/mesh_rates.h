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

/* Seconds of a message between `ranks` devices of one process, the first of which is `first`.
 * `cache_dir`: CACHE_DIR. False: not known. */
bool xm_mesh_latency_load(const char *cache_dir, const struct xm_device_info *first,
                          uint32_t ranks, double *latency_s);
void xm_mesh_latency_store(const char *cache_dir, const struct xm_device_info *first,
                           uint32_t ranks, double latency_s);

/* Replaces the wish's rates by those of its devices, info[wish->ranks]: the slowest one's reading
 * (its streaming rate as it was measured, else its card's), unless one is not known; and the
 * latency of a message, where it is known. */
void xm_mesh_take_rates(const char *cache_dir, const struct xm_device_info *const *info,
                        struct xm_split_wish *wish);

#ifdef __cplusplus
}
#endif
#endif
