/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of launches: what a driver that compiles at launches (XM_CAP_DRIVER_FILES) makes code of
 * its own for, as far as one can tell from outside: the local size, and whether a launch is wide;
 * where the driver chooses the local size, the global size.
 */
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

/* Of a kernel so far, each once. */
enum { XM_MOST_LAUNCH_KINDS = 64 };
struct xm_launch_kinds {
    struct xm_launch_kind list[XM_MOST_LAUNCH_KINDS];
    uint32_t n;
};

/* Adds the kind of a launch; whether there was none like it. False where the list is full. */
bool xm_launch_kinds_add(struct xm_launch_kinds *kinds, const struct xm_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
