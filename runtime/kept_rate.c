/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kept_rate.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/driver_files.h"
#include "runtime/kernel_cache.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

/* False: no memory. */
static bool
find_key(const struct xm_device_info *device, const char *what, struct xm_kernel_key *key)
{
    const bool is_cpu = device->kind == XM_DEVICE_CPU;
    struct xm_strbuf facts = {0};
    xm_strbuf_printf(&facts,
                     "rate 1: %" PRIu32 " units, %" PRIu32 " MHz, %" PRIu64
                     " bytes, %" PRIu64 " in caches, %s",
                     device->compute_units, device->clock_mhz, device->global_bytes,
                     device->cache_bytes, is_cpu ? xm_kernel_cache_processor() : "");
    *key =
        xm_kernel_cache_key(device->name, device->driver, what, xm_strbuf_text(&facts));
    const bool ok = xm_strbuf_ok(&facts);
    xm_strbuf_free(&facts);
    return ok;
}

bool
xm_kept_rate_load(const char *dir, const struct xm_device_info *device, const char *what,
                  double *rate)
{
    struct xm_kernel_key key;
    size_t n = 0;
    double kept = 0.0;
    if (!dir[0] || !find_key(device, what, &key))
        return false;
    void *bytes = xm_kernel_cache_load(dir, &key, &n);
    if (bytes && n == sizeof(kept))
        memcpy(&kept, bytes, sizeof(kept));
    xm_free(bytes);
    if (!(kept > 0.0 && kept <= DBL_MAX))
        return false;
    *rate = kept;
    return true;
}

void
xm_kept_rate_store(const char *dir, const struct xm_device_info *device, const char *what,
                   double rate)
{
    struct xm_kernel_key key;
    if (dir[0] && xm_driver_files_may_store() && find_key(device, what, &key))
        xm_kernel_cache_store(dir, &key, &rate, sizeof(rate));
}
