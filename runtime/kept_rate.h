/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates of a device that have been measured, kept beside its compiled kernels (kernel_cache.h).
 *
 * A rate belongs to the device's name, its driver, its units and its memory; on CPU devices to the
 * processor, too. A damaged file counts as missing.
 */
#ifndef XM_RUNTIME_KEPT_RATE_H
#define XM_RUNTIME_KEPT_RATE_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `dir`: CACHE_DIR; "": nothing is stored. `what` names the rate. False: no rate is stored. */
bool xm_kept_rate_load(const char *dir, const struct xm_device_info *device,
                       const char *what, double *rate);
/* Stores a rate in place of an earlier one. Does nothing if the folder cannot be written. */
void xm_kept_rate_store(const char *dir, const struct xm_device_info *device,
                        const char *what, double rate);

#ifdef __cplusplus
}
#endif
#endif
