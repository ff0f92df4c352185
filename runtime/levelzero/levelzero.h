/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of GPUs that Level Zero has and OpenCL has not, and telemetry (memory in use, power,
 * frequency). No kernel runs on Level Zero, and xemoe works without it.
 *
 * The loader (libze_loader.so.1, or the library that XM_LEVEL_ZERO names) is opened at run time. If
 * xemoe was built without its headers, every call fails with XM_UNSUPPORTED. The first call of
 * Level Zero that fails ends the search for devices, because some loaders list devices that do not
 * exist after a failed zeInit.
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

/* The clock of one frequency domain, in MHz; 0: not known. */
struct xm_ze_clock {
    const char *domain; /* "gpu", "memory", "media", static */
    double now_mhz, max_mhz;
};

/* Telemetry. why_not_x is empty when x was measured. */
struct xm_ze_telemetry {
    uint64_t memory_used, memory_bytes; /* bytes */
    double watts;                       /* mean power over 100 ms */
    /* sustained power limit in W; 0: none, or not known */
    double watts_limit;
    uint32_t n_clocks;
    struct xm_ze_clock clock[XM_ZE_CLOCKS];
    char why_not_memory[128], why_not_power[128], why_not_clocks[128];
};

struct xm_ze; /* the opened loader and the devices that it lists */

/* Opens the loader and reads the facts of all devices. XM_UNSUPPORTED: Level Zero cannot be used
 * here; the message says why. */
enum xm_status xm_ze_open(struct xm_ze **out, struct xm_error *err);
void xm_ze_close(struct xm_ze *ze); /* NULL is allowed */
/* The number of devices, and the facts of device i. */
size_t xm_ze_count(const struct xm_ze *ze);
const struct xm_ze_facts *xm_ze_facts_of(const struct xm_ze *ze, size_t i);

/* Finds the device *i that is the OpenCL device `d`: by UUID, else by PCI address, else as the only
 * device with its vendor and device id. False: Level Zero does not list it. */
bool xm_ze_find(const struct xm_ze *ze, const struct xm_device_info *d, size_t *i);
/* Reads the telemetry of device i. Takes 100 ms on devices with an energy counter, because power is
 * the difference of two readings. */
void xm_ze_measure(const struct xm_ze *ze, size_t i, struct xm_ze_telemetry *out);
/* Sets *bytes to the free bytes of a discrete GPU's own memory. False: not known (no loader, no
 * permission, another kind of device), *bytes is unchanged. Opens and closes the loader. */
bool xm_ze_memory_free(const struct xm_device_info *d, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
