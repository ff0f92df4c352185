/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this folder: the loader's functions, and the devices found. Only these
 * files see Level Zero's headers. */
#ifndef XM_RUNTIME_LEVELZERO_ZE_H
#define XM_RUNTIME_LEVELZERO_ZE_H

#include <level_zero/ze_ddi.h>
#include <level_zero/zes_ddi.h>

#include "runtime/levelzero/levelzero.h"

enum { XM_ZE_DRIVERS = 8, XM_ZE_DEVICES = 16, XM_ZE_PARTS = 8 };

struct xm_ze_device {
    ze_device_handle_t handle;
    zes_device_handle_t sysman; /* NULL: Sysman does not list it */
    struct xm_ze_facts facts;
};

struct xm_ze {
    void *library;
#define CORE(f)   ze_pfn##f##_t ze##f;
#define SYSMAN(f) zes_pfn##f##_t zes##f;
#include "runtime/levelzero/ze_calls.def"
    struct xm_ze_device device[XM_ZE_DEVICES];
    size_t n;
};

/* Sets n and fills array[n] by code = call(parent, &n, array). Asks for the number first, because
 * some drivers write to the whole array even if they have fewer elements. */
#define XM_ZE_LIST(code, call, parent, n, array)                                         \
    do {                                                                                 \
        (n) = 0;                                                                         \
        (code) = (call)(parent, &(n), NULL);                                             \
        if ((n) > XM_ARRAY_LEN(array))                                                   \
            (n) = XM_ARRAY_LEN(array);                                                   \
        if ((code) == ZE_RESULT_SUCCESS && (n) > 0)                                      \
            (code) = (call)(parent, &(n), array);                                        \
    } while (0)

const char *xm_ze_text(ze_result_t code); /* "not permitted", static */
/* Finds each device's Sysman handle. */
void xm_ze_open_sysman(struct xm_ze *ze);

#endif
