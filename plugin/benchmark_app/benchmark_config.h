/* SPDX-License-Identifier: Apache-2.0
 *
 * The properties that benchmark_app sets: key and value by device, from -load_config and from
 * flags, which win; -dump_config writes them as a JSON object of objects.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CONFIG_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_CONFIG_H

#include "plugin/benchmark_app/benchmark_args.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_benchmark_property {
    char *device, *key, *value; /* owned */
    const char *source;         /* the flag: "-hint", static; NULL: nobody asked for it */
    bool is_unknown;            /* to the device: it is not set, and not dumped        */
};

/* Zero-initialise. */
struct xm_benchmark_config {
    struct xm_benchmark_property *list; /* owned, in the order of being set */
    size_t n, capacity;
    /* Owned: those that -d names, without AUTO: and its kind; its text where it names none. */
    char **devices;
    size_t n_devices, devices_capacity;
};

/* The devices, -load_config and the flags. A device without a hint and without -nstreams gets
 * THROUGHPUT, or with -api sync LATENCY, with source NULL. XM_INVALID: a flag is wrong. */
enum xm_status xm_benchmark_config_make(const struct xm_benchmark_args *a,
                                        struct xm_benchmark_config *out,
                                        struct xm_error *err);
void xm_benchmark_config_free(struct xm_benchmark_config *c);
/* NULL: it is not set. */
const char *xm_benchmark_config_value(const struct xm_benchmark_config *c,
                                      const char *device, const char *key);
/* To -dump_config's file. */
enum xm_status xm_benchmark_config_dump(const struct xm_benchmark_config *c,
                                        const char *path, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
