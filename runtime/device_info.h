/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device is and can do: one plain struct, filled once when the device is probed (OpenCL
 * queries, devices.def, quirks.def) and read-only afterwards. All decisions by chip or driver read
 * this struct. Tests fill it by hand. */
#ifndef XM_RUNTIME_DEVICE_INFO_H
#define XM_RUNTIME_DEVICE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/cores.h"
#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of release, so that rules can compare. */
enum xm_arch {
    /* CPU devices, other vendors' GPUs, Intel GPUs whose row is missing and cannot be guessed */
    XM_ARCH_UNKNOWN,
    XM_ARCH_GEN9,
    XM_ARCH_GEN11,
    XM_ARCH_XE_LP,
    XM_ARCH_XE_HP,
    XM_ARCH_XE_HPG,
    XM_ARCH_XE_HPC,
    XM_ARCH_XE2,
    XM_ARCH_XE3
};
const char *xm_arch_text(enum xm_arch arch); /* "xe_lp", static */

enum xm_device_kind { XM_DEVICE_CPU, XM_DEVICE_GPU, XM_DEVICE_OTHER };

/* Capabilities that rules and variant rows ask for. */
enum xm_cap_bit {
#define CAP(id, text, processor, extensions) XM_CAP_BIT_##id,
#include "runtime/capabilities.def"
    XM_CAP_BITS
};
enum xm_cap {
#define CAP(id, text, processor, extensions) XM_CAP_##id = 1u << XM_CAP_BIT_##id,
#include "runtime/capabilities.def"
};

/* Address of a device on the PCI bus. */
struct xm_pci {
    uint32_t domain, bus, device, function;
};

struct xm_device_info {
    char name[128];    /* CL_DEVICE_NAME                                       */
    char vendor[64];   /* CL_DEVICE_VENDOR                                     */
    char driver[64];   /* CL_DRIVER_VERSION                                    */
    char platform[64]; /* CL_PLATFORM_NAME                                     */
    char version[64];  /* CL_DEVICE_VERSION                                    */
    enum xm_device_kind kind;
    uint32_t vendor_id; /* 0x8086 Intel                                         */
    uint32_t device_id; /* PCI id, 0 when not known                             */
    uint32_t ip_major, ip_minor, ip_revision; /* 12.70.4; 0.0.0 when not known        */
    bool has_uuid, has_luid, has_pci;
    uint8_t uuid[16], luid[8];
    struct xm_pci pci;
    /* Slices; sub-slices of a slice; EUs of a sub-slice; threads of an EU. 0: not known. */
    uint32_t slices, sub_slices, eus, threads;
    enum xm_arch arch;
    bool integrated; /* GPU that shares the host's memory                    */
    uint32_t caps;   /* enum xm_cap, or-ed                                   */
    uint32_t compute_units;
    /* cores of a sub-device (XM_SUB_DEVICES); n 0: not a sub-device */
    struct xm_cores cores;
    uint32_t clock_mhz;
    double memory_rate;      /* bytes a second, by a card's specification; 0: not known */
    uint64_t max_work_group; /* work-items                                           */
    uint64_t local_bytes;    /* local memory of a work-group                         */
    uint64_t global_bytes;   /* as the driver reports it                             */
    uint64_t max_alloc_bytes;
    uint64_t cache_bytes;
    uint32_t base_align; /* bytes: alignment of sub-buffer origins               */
    uint32_t cacheline_bytes;
    uint32_t sub_group_sizes[4]; /* ascending, 0-terminated when fewer                */
    bool facts_guessed; /* an Intel GPU that devices.def does not know           */
    char cl_std[8];     /* "CL3.0": the OpenCL C that kernels are built as       */
    /* Capabilities that XM_DEVICE_AS claims although the real device lacks them: rules see them,
     * kernels cannot use them. */
    uint32_t pretended;
};

static inline bool
xm_device_has(const struct xm_device_info *d, uint32_t caps)
{
    return (d->caps & caps) == caps;
}

/* As xm_device_has, but false for pretended capabilities: for code that is built and run. */
static inline bool
xm_device_really_has(const struct xm_device_info *d, uint32_t caps)
{
    return (d->caps & ~d->pretended & caps) == caps;
}

/* The names of `caps` separated by ", " into out; for messages and `devices`. */
void xm_caps_text(uint32_t caps, char *out, size_t out_bytes);

/* Sets ip_major, ip_minor and ip_revision from the driver's packed IP version. Two packings exist:
 * GMDID (architecture 10 bits, release 8, reserved 8, revision 6), recognised by 0 < architecture <
 * 100; before it, major << 16, then a byte minor and a byte revision. */
void xm_device_set_ip_version(struct xm_device_info *d, uint32_t packed);

/* Fills arch, integrated and the capabilities of the chip's row (found by IP version), then applies
 * the quirks. An Intel GPU without a row keeps what its driver reports and gets facts_guessed; its
 * arch is that of the nearest older row if that is Xe2 or newer, else unknown. */
void xm_device_apply_tables(struct xm_device_info *d);

/* Makes `d` look like the chip `name` of devices.def, in either case (XM_DEVICE_AS). XM_NOT_FOUND:
 * no such row. */
enum xm_status xm_device_pretend(struct xm_device_info *d, const char *name,
                                 struct xm_error *err);

/* Reads XM_SUB_DEVICES, the number of devices that each processor is split into; 1: not set. */
enum { XM_MOST_SUB_DEVICES = 32 };
enum xm_status xm_sub_devices(uint32_t *n, struct xm_error *err);
/* Fails if the value of XM_SUB_DEVICES or XM_DEVICE_AS is wrong. Opens no driver. */
enum xm_status xm_device_check_environment(struct xm_error *err);

/* Fills *out with the facts of a chip (devices.def) or card (cards.def), `name` in either case,
 * with its usual driver; for plans, no device is opened. global_bytes is UINT64_MAX if the chip
 * uses the host's memory, 0 if its memory is not known. A chip has no clock and no memory_rate; a
 * card's compute_units are its EUs. XM_NOT_FOUND: no such name. */
enum xm_status xm_device_imagine(const char *name, struct xm_device_info *out,
                                 struct xm_error *err);

/* Rows of devices.def, for tests and `devices --rules`. */
struct xm_device_row {
    const char *name; /* "tgl", "mtl_u": the name in XM_DEVICE_AS                */
    const char *text; /* marketing names                                         */
    uint32_t major, minor_first, minor_last, revision_first, revision_last;
    enum xm_arch arch;
    bool integrated;
    uint32_t set, clear; /* capabilities that the row adds and removes              */
    uint32_t sub_group_sizes[4];
};
const struct xm_device_row *xm_device_rows(size_t *n); /* static */

/* Rows of cards.def. */
struct xm_card_row {
    const char *name, *chip, *text;
    uint32_t eus, clock_mhz;
    double memory_rate; /* bytes a second                              */
    uint64_t memory;    /* bytes of its own memory; 0: it uses the host's */
};
const struct xm_card_row *xm_card_rows(size_t *n); /* static */

#ifdef __cplusplus
}
#endif
#endif
