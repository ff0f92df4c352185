/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kept.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/driver_files.h"
#include "runtime/kernel_cache.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

/* Makes the key of a measurement. False: no memory. For CPU devices drivers report the clock and
 * memory of the moment, so the key has the processor's features instead. */
static bool
find_key(const struct xm_device_info *device, const char *what, struct xm_kernel_key *key)
{
    struct xm_strbuf facts = {0};
    xm_strbuf_printf(&facts,
                     "kept by xemoe " XM_VERSION ": %" PRIu32 " units, %" PRIu64
                     " in caches, ",
                     device->compute_units, device->cache_bytes);
    if (device->kind == XM_DEVICE_CPU)
        xm_strbuf_add(&facts, xm_kernel_cache_processor());
    else
        xm_strbuf_printf(&facts, "%" PRIu32 " MHz, %" PRIu64 " bytes", device->clock_mhz,
                         device->global_bytes);
    *key =
        xm_kernel_cache_key(device->name, device->driver, what, xm_strbuf_text(&facts));
    const bool ok = xm_strbuf_ok(&facts);
    xm_strbuf_free(&facts);
    return ok;
}

/* Reads a stored measurement of at most `most` bytes; *n is 0 if there is none, or it is longer. */
static void
load(const char *dir, const struct xm_device_info *device, const char *what, void *to,
     size_t most, size_t *n)
{
    struct xm_kernel_key key;
    *n = 0;
    if (!dir[0] || !find_key(device, what, &key))
        return;
    void *bytes = xm_kernel_cache_load(dir, &key, n);
    if (bytes && *n <= most)
        memcpy(to, bytes, *n);
    else
        *n = 0;
    xm_free(bytes);
}

static bool
store(const char *dir, const struct xm_device_info *device, const char *what,
      const void *bytes, size_t n)
{
    struct xm_kernel_key key;
    return dir[0] && xm_driver_files_may_store() && find_key(device, what, &key) &&
           xm_kernel_cache_store(dir, &key, bytes, n);
}

bool
xm_kept_rate_load(const char *dir, const struct xm_device_info *device, const char *what,
                  double *rate)
{
    size_t n = 0;
    double kept = 0.0;
    load(dir, device, what, &kept, sizeof(kept), &n);
    if (n != sizeof(kept) || !(kept > 0.0 && kept <= DBL_MAX))
        return false;
    *rate = kept;
    return true;
}

void
xm_kept_rate_store(const char *dir, const struct xm_device_info *device, const char *what,
                   double rate)
{
    (void)store(dir, device, what, &rate, sizeof(rate));
}

bool
xm_kept_text_load(const char *dir, const struct xm_device_info *device, const char *what,
                  char text[XM_KEPT_TEXT])
{
    size_t n = 0;
    load(dir, device, what, text, XM_KEPT_TEXT - 1, &n);
    text[n] = '\0';
    return n > 0 && strlen(text) == n;
}

bool
xm_kept_text_store(const char *dir, const struct xm_device_info *device, const char *what,
                   const char *text)
{
    const size_t n = strlen(text);
    return n > 0 && n < XM_KEPT_TEXT && store(dir, device, what, text, n);
}

bool
xm_kept_path(const char *dir, const struct xm_device_info *device, const char *what,
             char *out, size_t n)
{
    struct xm_kernel_key key;
    return dir[0] && find_key(device, what, &key) &&
           xm_kernel_cache_path(dir, &key, out, n);
}
