/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kind of memory a use gets, for the engines that allocate and for the one that only
 * counts.
 *
 *   use             CPU devices         GPUs with USM   other GPUs
 *   device, weight  cl_mem              usm_device      cl_mem
 *   host            cl_mem              usm_host        cl_mem
 *   host weight     bytes in place      usm_host        cl_mem that the driver keeps on the host
 */
#include "runtime/engine_ops.h"

enum {
    /* alignment that an integrated GPU needs to read host memory in place … */
    SHARE_ALIGN = 4096,
    SHARE_GRANULE = 64 /* … and the size must be a multiple of this            */
};

enum xm_memory_kind
xm_memory_kind_for(const struct xm_device_info *info, enum xm_buffer_use use)
{
    if (xm_device_has(info, XM_CAP_HOST_VISIBLE))
        return XM_MEMORY_CL;
    bool on_host = use == XM_USE_HOST || use == XM_USE_HOST_WEIGHT;
    if (xm_device_really_has(info, XM_CAP_USM_HOST | XM_CAP_USM_DEVICE))
        return on_host ? XM_MEMORY_USM_HOST : XM_MEMORY_USM_DEVICE;
    return use == XM_USE_HOST_WEIGHT ? XM_MEMORY_CL_HOST : XM_MEMORY_CL;
}

bool
xm_memory_is_shared(const struct xm_engine *e, enum xm_buffer_use use, const void *bytes,
                    uint64_t n_bytes)
{
    if (use == XM_USE_OWN_WEIGHT ||
        (e->config.copy_weights == XM_YES && use != XM_USE_HOST_WEIGHT))
        return false;
    if (xm_device_has(&e->info, XM_CAP_HOST_VISIBLE))
        return true;
    return xm_device_has(&e->info, XM_CAP_UNIFIED) &&
           (uintptr_t)bytes % SHARE_ALIGN == 0 && n_bytes % SHARE_GRANULE == 0;
}

const char *
xm_memory_kind_text(enum xm_memory_kind kind)
{
    static const char *const text[XM_MEMORY_KIND_COUNT] = {
        [XM_MEMORY_CL] = "cl_mem",
        [XM_MEMORY_CL_HOST] = "cl_mem_host",
        [XM_MEMORY_USM_HOST] = "usm_host",
        [XM_MEMORY_USM_DEVICE] = "usm_device",
        [XM_MEMORY_USM_SHARED] = "usm_shared",
        [XM_MEMORY_MAPPED] = "mapped",
    };
    return kind < XM_MEMORY_KIND_COUNT ? text[kind] : "unknown";
}
