/* SPDX-License-Identifier: Apache-2.0
 *
 * What has been measured on a device, kept beside its compiled kernels (kernel_cache.h): rates, and
 * short texts such as the name of the fastest kernel.
 *
 * A measurement belongs to this version of xemoe and to the device's name, its driver, its units
 * and its caches; on CPU devices to the processor, on others to the memory and the clock as well.
 * Each is a file of its own, so that processes that measure at the same time lose nothing. A
 * damaged file counts as missing.
 */
#ifndef XM_RUNTIME_KEPT_H
#define XM_RUNTIME_KEPT_H

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

enum { XM_KEPT_TEXT = 64 }; /* bytes of a text, with its NUL */

/* The same for a text of at most XM_KEPT_TEXT - 1 bytes. */
bool xm_kept_text_load(const char *dir, const struct xm_device_info *device,
                       const char *what, char text[XM_KEPT_TEXT]);
/* Whether it is on disk now. */
bool xm_kept_text_store(const char *dir, const struct xm_device_info *device,
                        const char *what, const char *text);
/* The file of `what`, at most n - 1 bytes, into out; false: there can be none. */
bool xm_kept_path(const char *dir, const struct xm_device_info *device, const char *what,
                  char *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
