/* SPDX-License-Identifier: Apache-2.0
 *
 * Device names that contain a list of devices: "AUTO", "HETERO:GPU.1,CPU", "BATCH:GPU(4)",
 * "AUTO:-CPU". */
#ifndef XM_RUNTIME_UTIL_DEVICE_LIST_H
#define XM_RUNTIME_UTIL_DEVICE_LIST_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_DEVICE_NAME = 64 };

/* Returns the list of devices in a name: "GPU.1,CPU" for "HETERO:GPU.1,CPU", "" if the name has an
 * empty list ("AUTO"); NULL: `device` names a single device. */
const char *xm_device_list(const char *device);
/* Moves *list behind its next name and copies that name to `name`, without a text in parentheses,
 * truncated to fit. False: no names are left. */
bool xm_device_list_next(const char **list, char name[XM_DEVICE_NAME]);

#ifdef __cplusplus
}
#endif
#endif
