/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates that were measured on the devices of a mesh and stored (runtime/kept.h). They decide which
 * weights are worth splitting, and are used in forecasts.
 */
#ifndef XM_PLUGIN_MESH_MESH_RATES_H
#define XM_PLUGIN_MESH_MESH_RATES_H

#include "runtime/device_info.h"
#include "transformations/split/split.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Load and store the seconds of a message between `ranks` devices of one process, whose first
 * device is `first`. An exchange has log2(ranks) messages, rounded up (plugin/forecast.h).
 * `cache_dir`: CACHE_DIR. False: no latency is stored; *latency_s is unchanged. */
bool xm_mesh_latency_load(const char *cache_dir, const struct xm_device_info *first,
                          uint32_t ranks, double *latency_s);
void xm_mesh_latency_store(const char *cache_dir, const struct xm_device_info *first,
                           uint32_t ranks, double latency_s);

/* The rates of a device while others read the same memory, as fractions of its rates alone. They
 * are stored by the number of devices (`ranks`), the first device (`first`), and the format of most
 * bytes of the model's weights. Loading returns false if they are not stored. */
struct xm_mesh_together {
    double read, multiply; /* > 0 */
};
bool xm_mesh_together_load(const char *cache_dir, const struct xm_device_info *first,
                           uint32_t ranks, const char *weight_format,
                           struct xm_mesh_together *out);
void xm_mesh_together_store(const char *cache_dir, const struct xm_device_info *first,
                            uint32_t ranks, const char *weight_format,
                            const struct xm_mesh_together *t);

/* Sets wish->read_rate by its devices, info[wish->ranks]: the rate of the slowest device, from its
 * measured streaming rate or else its specification. If the rate of a device is not known,
 * read_rate stays. The latency stays the usual one: a measured latency includes the time in which
 * ranks wait for each other; and a split that does not pay for a token may well pay for a prompt,
 * which the decision does not consider. */
void xm_mesh_take_rates(const char *cache_dir, const struct xm_device_info *const *info,
                        struct xm_split_wish *wish);

#ifdef __cplusplus
}
#endif
#endif
