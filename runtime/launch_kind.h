/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of launches. A driver that compiles at launches (XM_CAP_DRIVER_FILES: PoCL) makes separate
 * machine code for each kind. Judging by the files that PoCL writes, a kind is given by the local
 * size and by whether the launch is wide; if the driver chooses the local size, also by the global
 * size. */
#ifndef XM_RUNTIME_LAUNCH_KIND_H
#define XM_RUNTIME_LAUNCH_KIND_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_launch;

struct xm_launch_kind {
    uint64_t local[3];
    uint64_t global[3]; /* 0 unless the driver chooses the local size */
    bool wide;          /* more than 65534 work-items in some dimension */
};

/* The kinds of a kernel's launches so far, each once, at most XM_MOST_LAUNCH_KINDS. */
enum { XM_MOST_LAUNCH_KINDS = 64 };
struct xm_launch_kinds {
    struct xm_launch_kind list[XM_MOST_LAUNCH_KINDS];
    uint32_t n;
};

/* Adds the kind of a launch to the list. Returns whether it is new; false: the list had it, or is
 * full. */
bool xm_launch_kinds_add(struct xm_launch_kinds *kinds, const struct xm_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
