/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of GPUs from Level Zero that OpenCL does not have, and telemetry (memory in use, power,
 * frequency). No kernel runs on Level Zero, and xemoe works without it.
 *
 * The loader (libze_loader.so.1, or the library that XM_LEVEL_ZERO names) is opened at run time.
 * Without its headers at build time every call is XM_UNSUPPORTED. The first call that fails ends
 * the search, because some loaders list devices that do not exist after a failed zeInit.
 */
#ifndef XM_RUNTIME_LEVELZERO_LEVELZERO_H
#define XM_RUNTIME_LEVELZERO_LEVELZERO_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_ZE_MEMORIES = 4, XM_ZE_CLOCKS = 4 };

struct xm_ze_memory {
    char name[32];
    uint64_t bytes;
    uint32_t clock_mhz, bus_bits; /* 0: not known */
};

struct xm_ze_facts {
    char name[128];
    uint32_t vendor_id, device_id;
    bool integrated;
    bool has_pci;
    uint8_t uuid[16];
    struct xm_pci pci;
    uint32_t clock_mhz;
    /* slices of the device, sub-slices of a slice, EUs of a sub-slice, threads of an EU */
    uint32_t slices, sub_slices, eus, threads;
    uint32_t simd_width;
    bool fp16, fp64, int64_atomics, dp4a;
    uint32_t n_memories;
    struct xm_ze_memory memory[XM_ZE_MEMORIES];
};

/* One frequency domain; megahertz, 0: not known. */
struct xm_ze_clock {
    const char *domain; /* "gpu", "memory", "media", static */
    double now_mhz, max_mhz;
};

/* Telemetry. why_not_x is empty when x was measured. */
struct xm_ze_telemetry {
    uint64_t memory_used, memory_bytes; /* bytes */
    double watts;                       /* over the last 100 ms */
    double watts_limit;                 /* sustained; 0: none, or not known */
    uint32_t n_clocks;
    struct xm_ze_clock clock[XM_ZE_CLOCKS];
    char why_not_memory[128], why_not_power[128], why_not_clocks[128];
};

struct xm_ze; /* the loader, opened, and the devices it has */

/* XM_UNSUPPORTED with the reason when there is no Level Zero here. */
enum xm_status xm_ze_open(struct xm_ze **out, struct xm_error *err);
void xm_ze_close(struct xm_ze *ze); /* NULL is allowed */
size_t xm_ze_count(const struct xm_ze *ze);
const struct xm_ze_facts *xm_ze_facts_of(const struct xm_ze *ze, size_t i);

/* Finds the OpenCL device `d` by its UUID, else by its PCI address, else as the only device of its
 * vendor and device id. False: Level Zero does not list it. */
bool xm_ze_find(const struct xm_ze *ze, const struct xm_device_info *d, size_t *i);
/* Reads the telemetry. Takes 100 ms on devices with an energy counter: power is the difference of
 * two readings. */
void xm_ze_measure(const struct xm_ze *ze, size_t i, struct xm_ze_telemetry *out);
/* Free bytes of a discrete GPU's own memory. False, and *bytes unchanged: not known (no loader, no
 * permission, another kind of device). Opens and closes the loader. */
bool xm_ze_memory_free(const struct xm_device_info *d, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
