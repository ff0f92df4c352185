/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of a device, kept on disk beside its compiled kernels (kernel_cache.h): rates, and
 * short texts such as the name of the fastest kernel.
 *
 * A measurement is valid for one version of xemoe and for one device: its name, driver, number of
 * compute units and cache size; for CPU devices also the processor, for others the memory size and
 * the clock. Each measurement is a file of its own, so that processes that measure at the same time
 * overwrite nothing of each other. A damaged file counts as missing. */
#ifndef XM_RUNTIME_KEPT_H
#define XM_RUNTIME_KEPT_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the rate called `what`. `dir` is CACHE_DIR; "": nothing is stored. False: no rate is
 * stored. */
bool xm_kept_rate_load(const char *dir, const struct xm_device_info *device,
                       const char *what, double *rate);
/* Stores a rate, replacing an earlier one. Does nothing if the folder cannot be written. */
void xm_kept_rate_store(const char *dir, const struct xm_device_info *device,
                        const char *what, double rate);

enum { XM_KEPT_TEXT = 64 }; /* most bytes of a text, its NUL included */

/* Loads a text of at most XM_KEPT_TEXT - 1 bytes. False: none is stored. */
bool xm_kept_text_load(const char *dir, const struct xm_device_info *device,
                       const char *what, char text[XM_KEPT_TEXT]);
/* Stores a text of 1 to XM_KEPT_TEXT - 1 bytes. Returns whether it is on disk now. */
bool xm_kept_text_store(const char *dir, const struct xm_device_info *device,
                        const char *what, const char *text);
/* Writes the path of the file of `what` to out[n]; false: `dir` is "", or the path is too long. */
bool xm_kept_path(const char *dir, const struct xm_device_info *device, const char *what,
                  char *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
