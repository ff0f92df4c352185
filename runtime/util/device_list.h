/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices in names of several devices: "AUTO", "HETERO:GPU.1,CPU", "BATCH:GPU(4)",
 * "AUTO:-CPU".
 */
#ifndef XM_RUNTIME_UTIL_DEVICE_LIST_H
#define XM_RUNTIME_UTIL_DEVICE_LIST_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_DEVICE_NAME = 64 };

/* The list of devices in such a name, "" where it has none; NULL: `device` names one device. */
const char *xm_device_list(const char *device);
/* Takes the next name off a list: without the text in parentheses, truncated to fit. False: the
 * list has no more names. */
bool xm_device_list_next(const char **list, char name[XM_DEVICE_NAME]);

#ifdef __cplusplus
}
#endif
#endif
