/* SPDX-License-Identifier: Apache-2.0
 *
 * The properties that benchmark_app sets, for each device: from the file of -load_config and from
 * the flags, which override it. -dump_config writes them as {"DEVICE": {"KEY": "value", …}, …}.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CONFIG_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CONFIG_H

#include "plugin/benchmark_app/benchmark_args.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_benchmark_property {
    char *device, *key, *value; /* owned */
    const char *source; /* the flag, "-hint", static; NULL: a default of this program */
    bool is_unknown;    /* the device lacks the property: neither set nor dumped     */
};

/* Zero-initialise. */
struct xm_benchmark_config {
    struct xm_benchmark_property *list; /* owned; in the order in which they are set */
    size_t n, capacity;
    /* owned; the devices in the value of -d, "GPU" and "CPU" of "AUTO:GPU,CPU"; the value itself if
     * it has no list */
    char **devices;
    size_t n_devices, devices_capacity;
};

/* Fills *out from -d, -load_config and the flags. A device that has neither a performance hint nor
 * -nstreams gets the hint THROUGHPUT, or with -api sync LATENCY; its source is NULL. XM_INVALID: a
 * flag is wrong. On failure *out still has to be freed. */
enum xm_status xm_benchmark_config_make(const struct xm_benchmark_args *a,
                                        struct xm_benchmark_config *out,
                                        struct xm_error *err);
void xm_benchmark_config_free(struct xm_benchmark_config *c);
/* Returns the value of a device's property; NULL: it is not set. */
const char *xm_benchmark_config_value(const struct xm_benchmark_config *c,
                                      const char *device, const char *key);
/* Writes the file of -dump_config. */
enum xm_status xm_benchmark_config_dump(const struct xm_benchmark_config *c,
                                        const char *path, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
