/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/mesh/mesh_rates.h"

#include <stdio.h>

#include "plugin/forecast.h"
#include "runtime/kept.h"

/* Writes the name under which a latency is stored as a rate, in messages a second. */
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

static void
name_part(const char *what, const char *format, uint32_t ranks, char out[XM_KEPT_TEXT])
{
    snprintf(out, XM_KEPT_TEXT, "%s %.24s beside %u ranks", what, format, ranks - 1);
}

bool
xm_mesh_together_load(const char *cache_dir, const struct xm_device_info *first,
                      uint32_t ranks, const char *weight_format,
                      struct xm_mesh_together *out)
{
    char reading[XM_KEPT_TEXT], multiplying[XM_KEPT_TEXT];
    name_part("reads", weight_format, ranks, reading);
    name_part("multiplies", weight_format, ranks, multiplying);
    return xm_kept_rate_load(cache_dir, first, reading, &out->read) &&
           xm_kept_rate_load(cache_dir, first, multiplying, &out->multiply);
}

void
xm_mesh_together_store(const char *cache_dir, const struct xm_device_info *first,
                       uint32_t ranks, const char *weight_format,
                       const struct xm_mesh_together *t)
{
    char reading[XM_KEPT_TEXT], multiplying[XM_KEPT_TEXT];
    name_part("reads", weight_format, ranks, reading);
    name_part("multiplies", weight_format, ranks, multiplying);
    xm_kept_rate_store(cache_dir, first, reading, t->read);
    xm_kept_rate_store(cache_dir, first, multiplying, t->multiply);
}

/* Returns the bytes a second that kernels usually reach when reading from the device's memory; 0:
 * not known. */
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
