/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates of a device that have been measured, kept beside its compiled kernels (kernel_cache.h).
 *
 * A rate belongs to the device's name, its driver, its units and its memory; on CPU devices to the
 * processor, too. A damaged file, or one that holds no rate, is none.
 */
#ifndef XM_RUNTIME_KEPT_RATE_H
#define XM_RUNTIME_KEPT_RATE_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `dir`: CACHE_DIR; "": nothing is kept. `what` names the rate. False: none is kept. */
bool xm_kept_rate_load(const char *dir, const struct xm_device_info *device,
                       const char *what, double *rate);
/* Replaces the one that is kept. A folder that takes no files keeps none. */
void xm_kept_rate_store(const char *dir, const struct xm_device_info *device,
                        const char *what, double rate);

#ifdef __cplusplus
}
#endif
#endif
