/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_rates.h"

#include <stdio.h>

#include "plugin/forecast.h"
#include "runtime/kept.h"

/* A rate is above 0 in any case: of a latency it is messages a second. */
static void
name_latency(uint32_t ranks, char out[XM_KEPT_TEXT])
{
    snprintf(out, XM_KEPT_TEXT, "messages between %u ranks", ranks);
}

bool
xm_mesh_latency_load(const char *cache_dir, const struct xm_device_info *first,
                     uint32_t ranks, double *latency_s)
{
    char name[XM_KEPT_TEXT];
    double messages;
    name_latency(ranks, name);
    if (!xm_kept_rate_load(cache_dir, first, name, &messages))
        return false;
    *latency_s = 1.0 / messages;
    return true;
}

void
xm_mesh_latency_store(const char *cache_dir, const struct xm_device_info *first,
                      uint32_t ranks, double latency_s)
{
    char name[XM_KEPT_TEXT];
    name_latency(ranks, name);
    xm_kept_rate_store(cache_dir, first, name, 1.0 / latency_s);
}

/* What kernels reach of it; 0: not known. */
static double
read_rate(const char *cache_dir, const struct xm_device_info *info)
{
    double streaming;
    if (!xm_kept_rate_load(cache_dir, info, "reading", &streaming))
        streaming = info->memory_rate;
    return xm_usual_read_share * streaming;
}

void
xm_mesh_take_rates(const char *cache_dir, const struct xm_device_info *const *info,
                   struct xm_split_wish *wish)
{
    double slowest = 0.0;
    bool is_known = true;
    for (uint32_t i = 0; i < wish->ranks; i++) {
        const double rate = read_rate(cache_dir, info[i]);
        is_known &= rate > 0.0;
        slowest = i == 0 || rate < slowest ? rate : slowest;
    }
    if (is_known)
        wish->read_rate = slowest;
}
